"""IFEval: the form of a response, and what it begins and ends with."""

from __future__ import annotations

import json
import re

from verifiers.ifeval.catalogue import instruction, positive, text, whole
from verifiers.ifeval.text import lines

# Not a link, `[text](url)`, and not a citation, `[1]`.
_PLACEHOLDER = re.compile(r"\[(?=[^\[\]\n]*[^\W\d_])[^\[\]\n]+\](?!\()")
_BULLET = re.compile(r"[ \t]*[*+-][ \t]+\S")
_RULE = re.compile(r"[ \t]*([*_-])(?:[ \t]*\1){2,}[ \t]*\Z")
_HIGHLIGHT = re.compile(r"(?<!\*)(\*{1,3})(?![\s*])([^*\n]*[^*\s])\1(?!\*)")
_TITLE = re.compile(r"<<[^<>\n]*[^<>\s][^<>\n]*>>")
_SIX_ASTERISKS = re.compile(r"(?<!\*)\*{6}(?!\*)")
_FENCE = re.compile(r"```(?:json)?", re.IGNORECASE)
_FIXED_RESPONSES = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_MARKDOWN = r"[ \t>#*_\[(\"“]*"
_DOUBLE_QUOTES = (('"', '"'), ("“", "”"))


@instruction("detectable_content:number_placeholders", num_placeholders=whole)
def _placeholders(response: str, *, num_placeholders: int) -> bool:
    return len(_PLACEHOLDER.findall(response)) >= num_placeholders


@instruction("detectable_content:postscript", postscript_marker=text)
def _postscript(response: str, *, postscript_marker: str) -> bool:
    marker = postscript_marker.strip()
    dotted = r"\.\s?".join(map(re.escape, marker.rstrip(".").split(".")))
    ending = r"\." if marker.endswith(".") else r"\.?"
    after = r"(?!\w)" if marker[-1].isalnum() else ""
    return re.search(rf"^{_MARKDOWN}{dotted}{ending}{after}\W*\w", response, re.IGNORECASE | re.MULTILINE) is not None


@instruction("detectable_format:number_bullet_lists", num_bullets=whole)
def _bullets(response: str, *, num_bullets: int) -> bool:
    return sum(1 for line in lines(response) if _BULLET.match(line) and not _RULE.match(line)) == num_bullets


@instruction("detectable_format:constrained_response")
def _fixed_response(response: str) -> bool:
    return sum(option in response for option in _FIXED_RESPONSES) == 1


@instruction("detectable_format:number_highlighted_sections", num_highlights=whole)
def _highlights(response: str, *, num_highlights: int) -> bool:
    return len(_HIGHLIGHT.findall(response)) >= num_highlights


@instruction("detectable_format:multiple_sections", section_spliter=text, num_sections=positive)
def _sections(response: str, *, section_spliter: str, num_sections: int) -> bool:
    splitter = r"\s+".join(map(re.escape, section_spliter.split()))
    marks = re.findall(rf"^{_MARKDOWN}{splitter}\s*(?:\d+|[IVXLC]+)(?!\w)", response, re.MULTILINE)
    return len(marks) >= num_sections


@instruction("detectable_format:json_format")
def _json(response: str) -> bool:
    text = response.strip()
    fence = _FENCE.match(text)
    inner = text[fence.end() : -3] if fence and text.endswith("```") else text
    try:
        value = json.loads(inner, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


@instruction("detectable_format:title")
def _title(response: str) -> bool:
    return _TITLE.search(response) is not None


@instruction("combination:two_responses")
def _two_responses(response: str) -> bool:
    parts = [part.strip() for part in _SIX_ASTERISKS.split(response)]
    inner = parts[not parts[0] : len(parts) - (not parts[-1])]
    return len(inner) == 2 and all(inner) and inner[0] != inner[1]


@instruction("combination:repeat_prompt", prompt_to_repeat=text)
def _repeats_prompt(response: str, *, prompt_to_repeat: str) -> bool:
    request, said = prompt_to_repeat.casefold().split(), response.casefold().split()
    together, wanted = " ".join(said), " ".join(request)
    return together.startswith(wanted) and together != wanted


@instruction("startend:end_checker", end_phrase=text)
def _ends_with(response: str, *, end_phrase: str) -> bool:
    ending = " ".join(end_phrase.casefold().split())
    return " ".join(response.casefold().split()).rstrip('"” ').endswith(ending.rstrip('"” '))


@instruction("startend:quotation")
def _quoted(response: str) -> bool:
    inner = response.strip()
    return any(inner.startswith(start) and inner.endswith(end) and inner[1:-1].strip() for start, end in _DOUBLE_QUOTES)
