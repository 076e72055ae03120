"""A search engine over a local corpus, which does not change during use."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_envs.data.local import iterate_rows
from rlvr_envs.tools.tool import Arguments, ToolUseError
from verifiers import Count, DataError, InvalidArgumentError, checked, missing_dependency

_WORD = re.compile(r"\w+")
_TEXTS = (".txt", ".md")


class Search:
    """Finds the documents of a local corpus that match a query best, by BM25 (Robertson and Zaragoza 2009).

    The corpus is read once, so later changes of a file have no effect. `fingerprint` identifies the content of the corpus, and
    is part of the environment's manifest. Words are compared in lower case. Among documents with equal scores, earlier
    documents come first.

    Args:
        corpus: A folder of .txt and .md files; a .jsonl or .parquet file with the column `text` and, optionally, the column
            `title`; or the texts themselves.
        results: Number of documents in an answer.
        max_characters: Maximum length of an answer, shared equally among the documents.
        name: The tool's name.

    Raises:
        InvalidArgumentError: If the file does not exist or is of another kind, or a setting is out of range.
        DataError: If the corpus is empty, a document has no words, or a row has no text.
        MissingDependencyError: If bm25s is not installed.
    """

    description = (
        "Searches a collection of documents for words, and answers with the beginnings of those that fit best."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "the words to search for"}},
        "required": ["query"],
        "additionalProperties": False,
    }
    timeout_s = 30.0

    @checked
    def __init__(
        self,
        corpus: str | os.PathLike[str] | Sequence[str],
        *,
        results: Count = 3,
        max_characters: Count = 4000,
        name: str = "search",
    ) -> None:
        try:
            import bm25s
        except ImportError as error:
            raise missing_dependency("bm25s", "search", "the tool Search") from error
        read = _read(Path(corpus)) if isinstance(corpus, str | os.PathLike) else ((None, text) for text in corpus)
        self._documents = [(title, _checked(text, title)) for title, text in read]
        if not self._documents:
            raise DataError(f"the corpus {corpus!r} has no documents")
        self.name = name
        self.max_characters = max_characters
        self._results = results
        written = json.dumps(self._documents, ensure_ascii=False).encode()
        self.fingerprint = f"search/{results}/{sha256(written).hexdigest()}"
        self._index = bm25s.BM25()
        self._index.index([_words(f"{title or ''} {text}") for title, text in self._documents], show_progress=False)

    def __call__(self, arguments: Arguments, earlier: Sequence[Arguments]) -> str:
        """Search for `query`.

        Raises:
            ToolUseError: If the query has no words.
        """
        words = _words(str(arguments["query"]))
        if not words:
            raise ToolUseError("the query has no words")
        scores = self._index.get_scores(words)
        best = np.argsort(-scores, kind="stable")[: self._results]
        found = [self._documents[at] for at in best.tolist() if scores[at] > 0]
        if not found:
            return "no document has any of these words"
        room = self.max_characters // len(found) - len("\n\n")
        return "\n\n".join(_shown(number, title, text, room) for number, (title, text) in enumerate(found, start=1))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _checked(text: object, title: str | None) -> str:
    if not isinstance(text, str) or not _words(text):
        named = "" if title is None else f" {title!r}"
        raise DataError(f"a document of a corpus must be text with words in it; got{named} {text!r:.80}")
    return text


def _shown(number: int, title: str | None, text: str, room: int) -> str:
    whole = f"[{number}] {'' if title is None else title + ': '}{text.strip()}"
    return whole if len(whole) <= room else f"{whole[: max(room - 4, 0)]} ..."


def _read(path: Path) -> Iterable[tuple[str | None, str]]:
    """The titles and texts of a corpus, in the order of the file names or rows."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in _TEXTS)
        return [(str(file.relative_to(path)), _text_of(file)) for file in files]
    if not path.is_file():
        raise InvalidArgumentError(
            f"the corpus {str(path)!r} does not exist: expected a folder, or a .jsonl or .parquet file"
        )
    return [
        (row.text("title") if row.values.get("title") is not None else None, row.text("text"))
        for row in iterate_rows(path)
    ]


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text: {error}") from error
