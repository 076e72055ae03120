"""Replies are cut to the room there is, and say so."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from rlvr_envs import ByteTokenizer
from rlvr_envs.contexts import SummaryRequest
from rlvr_envs.dialogue import PlainDialogue, TemplateDialogue, fit, spell
from tests.dialogue.templates import tokenizer_of
from verifiers import InvalidArgumentError, Message

PLAIN = PlainDialogue(ByteTokenizer())


def text(tokens: NDArray[np.int32] | None) -> str:
    assert tokens is not None
    return bytes(tokens.tolist()).decode()


@pytest.mark.parametrize("room", [100, 500])
def test_the_longest_is_cut_with_a_mark_that_counts(room: int) -> None:
    fitted = fit(PLAIN, [Message("tool", "é" * 600), Message("tool", "short")], 0, room)
    assert fitted is not None
    tokens = fitted.tokens
    said = text(tokens)
    cut = re.fullmatch(r"<result>(é*) \[cut: (\d+) of 1200 tokens\]</result><result>short</result>", said)
    assert cut is not None
    assert room - 10 <= len(tokens) <= room
    assert int(cut[2]) in (1200 - 2 * len(cut[1]), 1200 - 2 * len(cut[1]) - 1)


def test_a_cut_reply_keeps_the_templates_frame() -> None:
    tokenizer = tokenizer_of("chatml")
    fitted = fit(TemplateDialogue(tokenizer), [Message("user", "word " * 200)], tokenizer.eos_token, 120)
    assert fitted is not None
    tokens = fitted.tokens
    assert len(tokens) <= 120
    said = spell(tokenizer, tokens)
    assert re.fullmatch(
        r"\n<\|im_start\|>user\n(word ?)+ \[cut: \d+ of 1000 tokens\]<\|im_end\|>\n<\|im_start\|>assistant\n", said
    )


def test_a_frame_says_where_the_result_goes() -> None:
    with pytest.raises(InvalidArgumentError, match="where the result of a tool goes, got '<result>'"):
        PlainDialogue(ByteTokenizer(), frame="<result>")
    framed = PlainDialogue(ByteTokenizer(), frame="={}\n")
    assert text(framed.bridge([Message("tool", "4")], 0)) == "=4\n"


def test_a_request_for_a_summary_is_never_cut() -> None:
    request = SummaryRequest("user", "Sum up. " * 20)
    said = [Message("tool", "x" * 100), request]
    fitted = fit(PLAIN, said, 0, 220)
    assert fitted is not None
    assert re.fullmatch(r"<result>x+ \[cut: \d+ of 100 tokens\]</result>(Sum up\. ){20}", text(fitted.tokens))
    assert fit(PLAIN, said, 0, 180) is None
    assert fit(PLAIN, [request], 0, 159) is None
