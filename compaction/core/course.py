"""How the next call for a summary is made, after what the earlier ones of the job's attempt met.

Each cause has its own small budget, and budgets never start again: three retries of a prompt that was too long (cuts
and lowered outputs together), one more try after a reply without a summary, one after a summary that broke off, one
with another model after a refusal, one with the model's own output limit. Together at most eight calls, the job's
budget (DESIGN §8).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction.core import truncation
from compaction.errors import ApiError, NoSummary, PromptTooLong, Refusal, RequestTooLarge, SummaryTruncated
from compaction.ports import RequestKind

MAX_PTL_RETRIES = 3  # DESIGN §3

BadReply = NoSummary | SummaryTruncated | Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The next call: its kind, model and output limit, and what is cut from its messages.

    `counted` is the provider's count of the whole request, asked for beforehand when our estimate said that it cannot
    fit; `refusals` are the cuts so far, each applied again in its order.
    """

    kind: RequestKind
    model: str
    max_output_tokens: int
    counted_tokens: int | None = None
    refusals: tuple[PromptTooLong, ...] = ()
    lowered: int = 0  # how often less output was asked for instead of a cut
    asked_again: bool = False
    shorter: bool = False
    other_model: bool = False
    limited: bool = False  # the model's own output limit was taken over

    @property
    def ptl_attempts(self) -> int:
        """Retries of a prompt that was too long."""
        return len(self.refusals) + self.lowered


def after_refusal(course: Course, refusal: PromptTooLong) -> Course:
    """The course after a prompt that was too long. Raises the refusal when three retries were not enough.

    A cut makes a shared prefix worthless, so the next request is a fresh one.
    """
    if course.ptl_attempts >= MAX_PTL_RETRIES:
        raise RequestTooLarge if refusal.unit == "bytes" else refusal
    lower = truncation.lower_output(refusal, course.max_output_tokens)
    if lower is not None:
        return replace(course, max_output_tokens=lower, lowered=course.lowered + 1)
    return replace(course, kind="fresh", refusals=(*course.refusals, refusal))


def after_output_limit(course: Course, error: ApiError) -> Course:
    """The course after the provider said that the model writes less than we asked for. Raises the error otherwise."""
    limit = error.output_limit_tokens
    if course.limited or limit is None or not 0 < limit < course.max_output_tokens:
        raise error
    return replace(course, max_output_tokens=limit, limited=True)


def after_bad_reply(course: Course, problem: BadReply, fallback_model: str | None = None) -> Course:
    """The course after a reply that is no summary. Raises the problem when its one more try was used up.

    A refusal is not asked again with less of the same; only another model may answer differently.
    """
    if isinstance(problem, NoSummary) and not course.asked_again:
        return replace(course, kind="fresh", asked_again=True)
    if isinstance(problem, SummaryTruncated) and not course.shorter:
        return replace(course, kind="fresh", shorter=True)
    if isinstance(problem, Refusal) and fallback_model is not None and not course.other_model:
        return replace(course, kind="fresh", model=fallback_model, other_model=True)
    raise problem
