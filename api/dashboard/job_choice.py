"""Which jobs a page is about: the fields of the filter form, from an address or a form, and back into an address."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from api.errors import invalid
from api.schemas.fields import storable_text
from compaction.core.jobs import Status, StrategyName, Trigger
from compaction.store.job_search import JobFilter

Words = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), AfterValidator(storable_text)]


def _in_utc(moment: datetime) -> datetime:
    """What a browser's date field gives has no zone: pages speak UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


Moment = Annotated[datetime, AfterValidator(_in_utc)]


class JobChoice(BaseModel):
    """The filter of jobs. A field that was left empty is none."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    status: Status | None = None
    code: Annotated[str, Field(max_length=50, pattern=r"^[a-z_]+$")] | None = None
    tenant: Words | None = None
    session: Words | None = None
    trigger: Trigger | None = None
    strategy: StrategyName | None = None
    after: Moment | None = None
    before: Moment | None = None
    open: bool = False

    @property
    def params(self) -> dict[str, Any]:
        """The fields that are set, for an address or hidden fields."""
        told = self.model_dump(exclude_defaults=True)
        return {name: _written(value) for name, value in told.items()}

    @property
    def in_words(self) -> str:
        """The filter as the audit log keeps it."""
        return " ".join(f"{name}={value}" for name, value in self.params.items()) or "all jobs"

    def filter(self, **further: Any) -> JobFilter:  # noqa: ANN401 - fields of JobFilter
        """The store's filter; the tenant is part of the reach."""
        own = {name: getattr(self, name) for name in type(self).model_fields if name not in {"tenant", "open"}}
        return JobFilter(**own | {"open_only": self.open} | further)


def _written(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()  # to the microsecond: a dry run and its deed must mean the same jobs
    return "1" if value is True else value


def chosen(fields: Mapping[str, str]) -> JobChoice:
    """The filter in these fields. Raises InvalidRequest naming what is wrong."""
    try:
        return JobChoice.model_validate({name: value for name, value in fields.items() if value.strip()})
    except ValidationError as error:
        raise invalid(error) from None
