"""How providers word their refusals: patterns over the lower-case, single-spaced text of `error_text.flatten`.

The wordings come from public bug reports and engines' sources; none has a stable code, so the words are all there is.
Every pattern is made of literal words and gaps of bounded length, so that no text can make it backtrack for long.
"""

from __future__ import annotations

import re


def _number(name: str) -> str:
    return rf"(?P<{name}>[0-9][0-9,_]{{0,14}})"


_IN = _number("input")  # tokens of the prompt
_OUT = _number("output")  # tokens that were asked for
_MAX = _number("limit")  # the window, or the most that may be asked for
_ALL = _number("total")  # prompt and output together
_OPENAI = rf"maximum context length is {_MAX} tokens.{{0,40}}? "  # OpenAI, vLLM, OpenRouter and who imitates them
_POOLSIDE = r"(?:the )?(?:model's )?maximum (?:allowed )?(?:input |context )?length (?:of )?"

# A refusal with numbers. The first that matches counts, so the ones that tell more stand first.
COUNTED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"prompt (?:is )?too long:? {_IN} tokens > {_MAX}",  # Anthropic
        rf"exceed context limit: {_IN} \+ {_OUT} > {_MAX}",  # Anthropic, models up to 4.1
        rf"prompt tokens \({_IN}\) exceeds? (?:the )?model maximum \({_MAX}\)",  # Bedrock Mantle
        rf"{_OPENAI}requested (?:about )?{_ALL} tokens \([^)]{{0,120}}?{_OUT} (?:in|for) the (?:output|completion)\)",
        rf"{_OPENAI}requested {_OUT} output tokens and your prompt contains (?:at least )?{_IN} input tokens",
        rf"{_OPENAI}request has {_IN} input tokens(?: plus {_OUT} )?",
        rf"{_OPENAI}messages resulted in {_IN} tokens",
        rf"{_OPENAI}requested (?:about )?{_ALL} tokens",
        rf"maximum context length of {_MAX} tokens.{{0,20}}? total of {_ALL} tokens: {_IN} tokens from the input",
        rf"\({_OUT} > {_MAX} - {_IN}\)",  # vLLM: max_tokens > window - input
        rf"input length \(?{_IN}(?: tokens)?\)? exceeds {_POOLSIDE}\(?{_MAX}",  # Poolside, SGLang
        rf"input \(?{_IN} tokens\)? is longer than the model's context length \(?{_MAX}",  # SGLang
        rf"input token count \(?{_IN}\)? exceeds the maximum number of tokens allowed \(?{_MAX}",  # Gemini
        rf"prompt token count of {_IN} exceeds the limit of {_MAX}",  # Copilot
        rf"exceeded model token limit: {_MAX} \(requested: {_IN}\)",  # Kimi
        rf"request \({_IN} tokens\) exceeds the available context size \({_MAX} tokens\)",  # llama.cpp
        rf"n_prompt_tokens={_IN} .{{0,60}}?n_ctx={_MAX}",  # the same as JSON members
        rf"prompt contains {_IN} tokens.{{0,60}}?too large for model with {_MAX} maximum context",  # Mistral
        rf"maximum prompt length is {_MAX} but the request contains {_IN} tokens",  # xAI
        rf"must be <= {_MAX}\. given: {_IN} `?inputs`? tokens and {_OUT} `?max_new_tokens",  # Text Generation Inference
        rf"tokens in the prompt cannot exceed {_MAX} .{{0,3}} ?received {_IN}",  # Cohere
        rf"prompt too long: {_IN} tokens exceeds [a-z_ ]{{3,20}} {_MAX}",
        rf"prompt is too long: {_IN}, model maximum context length: {_MAX}",  # Fireworks
    )
)
AT_LEAST = re.compile(r"\bat least\b")

# The same without numbers, where the words leave no doubt.
TOO_LONG = re.compile(
    r"prompt (?:is )?too (?:long|large)\b"
    r"|input (?:is )?too long\b"
    r"|context[_ ](?:length|window|limit|size)[_ ](?:is )?(?:exceeded|exceeds|overflow)"
    r"|contextwindowexceeded|context overflow|exceed_context_size|model_max_prompt_tokens_exceeded"
    r"|maximum context length|maximum prompt length|exceeded model token limit"
    r"|exceed(?:s|ed)? (?:the |your |this )?(?:model's |model |maximum |available )?context"
    r"|(?:greater|longer|larger) than the (?:model's |maximum )?context"
    r"|input token count.{0,40}exceeds|total tokens exceeds? the model"
    r"|too large for model with|loaded with context length of only"
)
# Words that a throttle uses too; they count only when nothing speaks of rates.
PERHAPS_TOO_LONG = re.compile(
    r"too many (?:input |prompt )?tokens|token limit (?:was )?(?:exceeded|reached)"
    r"|(?:reduce|shorten) the (?:length of the |size of the )?(?:input|prompt|messages)"
    r"|(?:input|prompt) tokens? exceeds?|max(?:imum)? (?:number of )?input tokens?\b|max input token limit"
)
BILLING = re.compile(
    r"billing_error|credit balance|usage credits|extra usage|payment required|billing details|monthly usage limit"
    r"|insufficient[_ ](?:quota|funds|balance|credit)|spend(?:ing)?[_ ]limit|specified api usage limits"
    r"|more credits|(?:purchase|buy|out of|no) credits"
)
_TIME = r"per[_ ]?(?:minute|min\b|day|hour|second)"
QUOTA = re.compile(r"exceeded your current quota")  # OpenAI's empty account, but also Gemini's free minute
RATE = re.compile(
    rf"{_TIME}|rate[_ -]?limit|throttl|too many requests|please (?:wait|slow down)|retry in [0-9]|retrydelay"
    r"|resource[_ ]?exhausted|\b[tr]p[mdh]\b|quota exceeded|concurrency limit|ramp_limit|servicequotaexceeded"
)
MEDIA = re.compile(
    r"image dimensions|image_dimensions|too many images|too much media|support image|image input is not"
    r"|\bimages?\b.{0,60}?(?:exceed|too (?:large|small|big)|unsupported|not supported|could not|not valid|invalid)"
    r"|(?:could not|unable to|failed to) process (?:the )?(?:image|pdf|document)"
    r"|\bpdf\b.{0,60}?(?:exceed|too (?:large|many)|password|not valid|invalid|maximum)"
    r"|maximum of [0-9]{1,6} (?:pdf )?pages|(?:unsupported|invalid) (?:image|media)"
)
OUTPUT_CAP = tuple(
    re.compile(pattern)
    for pattern in (
        rf"max_tokens: [0-9]{{1,15}} > {_MAX}, which is the maximum allowed number of output tokens",  # Anthropic
        r"maxoutputtokens value of [0-9]{1,15} but .{0,40}?1 \(inclusive\) to (?P<above>[0-9]{1,15}) \(excl",  # Gemini
        rf"supports at most {_MAX} (?:completion|output) tokens",  # OpenAI
        rf"valid range of max_(?:completion_)?tokens is \[1, ?{_MAX}\]",  # DeepSeek
        rf"max_(?:completion_|output_)?tokens`?.{{0,20}}?(?:less than or equal to|at most|<=) `?{_MAX}",
        rf"maximum tokens you requested exceeds the model limit of {_MAX}",  # Bedrock Converse
        r"max_(?:completion_|output_)?tokens`?(?: is)? too (?:large|high)",
        r"maximum (?:allowed )?(?:number of )?(?:output|completion) tokens",
    )
)
_WHOLE = r"(?:request|payload|body|entity|content)"
BYTES = re.compile(
    r"request_too_large|request_body_too_large|payload_too_large|exceeds the maximum (?:request |body |allowed )?size"
    rf"|string[_ ](?:too long|above_max_length)|{_WHOLE}(?: entity| body| content| length)?[_ ](?:is )?too large"
    r"|length limit exceeded|maximum (?:request|body|payload|content) (?:size|length)|content length exceed"
)
# The numbers of a refusal that is about bytes or characters; `input` is what was sent.
_OVER = r"(?: bytes)?\)? (?:exceeds?|>|is (?:larger|greater) than)[^0-9]{0,40}"
BYTES_COUNTED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"maximum length {_MAX}\b.{{0,40}}?\blength {_IN}",  # OpenAI: one string
        rf"{_IN} bytes (?:>|exceeds?) [a-z ]{{0,40}}?{_MAX}",
        rf"(?:size|length|body|payload)\b[^0-9]{{0,20}}{_IN}{_OVER}{_MAX}(?: bytes)?\b(?! ?[kmg]i?b)",
        rf"(?:size|length|limit)\b[^0-9]{{0,20}}{_MAX}(?: bytes)?,? (?:but )?(?:got|received|was) {_IN}",
        rf"(?:limit|maximum)(?: (?:size|length|allowed|request|body|payload)){{0,4}}(?: is| of|:)? {_MAX} bytes",
    )
)
CONFIG = re.compile(
    r"context window (?:is )?too small|anthropic-beta|beta is not yet available|not available for this subscription"
    r"|budget_tokens|extra inputs are not permitted|(?:unsupported|unknown|unrecognized) (?:parameter|request argument)"
    r"|authentication_error|permission_error|not_found_error|invalid (?:x-)?api[_ -]key|invalid_api_key|model_not_found"
)
