"""The search engine: what it finds, in what order, and that its corpus stays as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlvr_envs.tools import Search
from verifiers import DataError, InvalidArgumentError

pytest.importorskip("bm25s", reason="the tool Search needs the extra search")

TEXTS = ["The river Aare flows through Bern.", "Bern is the capital of Switzerland.", "A river is water that flows."]


def found(search: Search, query: str) -> str:
    return search({"query": query}, ())


def test_documents_with_rarer_words_and_more_of_them_come_first() -> None:
    search = Search(TEXTS)
    assert found(search, "capital of Switzerland").startswith("[1] Bern is the capital of Switzerland.")
    assert found(search, "RIVER, Bern?").startswith("[1] The river Aare")
    assert found(search, "aare") == "[1] The river Aare flows through Bern."
    assert found(search, "mountain") == "no document has any of these words"


def test_answers_have_room_for_every_document() -> None:
    search = Search(["word " + "a" * 10_000, "word " + "b" * 10_000], max_characters=100)
    answer = found(search, "word")
    assert len(answer) <= 100
    assert "[1] word a" in answer
    assert "[2] word b" in answer


def test_a_corpus_stays_as_it_was_read(tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_text("".join(json.dumps({"title": f"T{at}", "text": text}) + "\n" for at, text in enumerate(TEXTS)))
    search, again = Search(file), Search(file)
    assert search.fingerprint == again.fingerprint
    file.write_text(json.dumps({"text": "Bern has changed."}) + "\n")
    assert found(search, "capital") == "[1] T1: Bern is the capital of Switzerland."
    assert Search(file).fingerprint != search.fingerprint
    assert found(Search(file), "bern") == "[1] Bern has changed."


def test_a_folder_is_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.md").write_text("lakes and rivers")
    (tmp_path / "one.txt").write_text("rivers")
    (tmp_path / "other.bin").write_bytes(b"\xff")
    assert found(Search(tmp_path), "rivers") == "[1] one.txt: rivers\n\n[2] b/two.md: lakes and rivers"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file holds no rows"),
        ('{"text": 3}\n', "line 1: .*text"),
        ('{"text": "?"}\n', "a document of a corpus must be text with words in it"),
        (None, r"the corpus '.*corpus.jsonl' does not exist"),
    ],
)
def test_what_is_no_corpus_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "corpus.jsonl"
    if content is not None:
        file.write_text(content)
    with pytest.raises((DataError, InvalidArgumentError), match=message):
        Search(file)
    with pytest.raises(DataError, match="has no documents"):
        Search([])
    with pytest.raises(InvalidArgumentError, match="results must be at least 1, got 0"):
        Search(TEXTS, results=0)
