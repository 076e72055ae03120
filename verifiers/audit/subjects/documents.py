"""JSON: a schema of a few drawn properties, documents that fit it in several spellings, and documents that break one rule."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from verifiers.audit.subjects.tasks import Field, Task, fenced

Values = tuple[Any, ...]


def _properties(rng: random.Random) -> dict[str, tuple[dict[str, Any], Values, Values]]:
    """Properties by name, each with its schema, values that fit the schema, and values that don't."""
    low, size = rng.randint(-9, 9), rng.randint(2, 5)
    high = low + rng.randint(2, 9)
    whole, word = {"type": "integer"}, {"type": "string"}
    item = {"type": "object", "properties": {"id": whole}, "required": ["id"], "additionalProperties": False}
    return {
        "count": (
            {**whole, "minimum": low, "maximum": high}, (low, high, low + 1), (low - 1, high + 1, low + 0.5, str(low), None),
        ),
        "ratio": ({"type": "number", "exclusiveMinimum": low}, (low + 0.25, low + 1), (low, low - 0.5, "1", True)),
        "step": ({**whole, "multipleOf": size}, (0, size, -3 * size), (size + 1, 1, 0.5)),
        "name": (
            {**word, "minLength": 2, "maxLength": size + 2}, ("ab", "é" * (size + 2)), ("a", "", "b" * (size + 3), 12, None),
        ),
        "code": ({**word, "pattern": "^[A-Z]{2}-[0-9]+$"}, ("AB-1", "ZZ-007"), ("ab-1", "AB1", "AB-", "XAB-1")),
        "size": ({"enum": ["small", "large", 3]}, ("small", "large", 3), ("Small", "medium", "3", None)),
        "done": ({"type": "boolean"}, (True, False), ("true", 0, 1, None)),
        "kind": ({"const": "v1"}, ("v1",), ("v2", ["v1"], None)),
        "tags": (
            {"type": "array", "items": word, "minItems": 1, "maxItems": size, "uniqueItems": True},
            (["a"], ["a", "A"], list("abcde"[:size])), ([], ["a", "a"], ["a", 1], list("abcdef"[: size + 1]), "a"),
        ),
        "items": (
            {"type": "array", "items": item},
            ([], [{"id": 1}, {"id": 1}]), ([{"id": "1"}], [{}], [{"id": 1, "x": 2}], {"id": 1}),
        ),
        "either": ({"anyOf": [whole, {"type": "null"}]}, (1, None), ("1", 1.5, [])),
        "one": ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]}, (1, 5.5), (7, 2.5)),
    }  # fmt: skip


_SPOILT: dict[str, Callable[[str], str]] = {
    "not JSON: comma at the end": lambda text: text[:-1] + ",}",
    "not JSON: single quotes": lambda text: text.replace('"', "'"),
    "not JSON: Python": lambda text: text[:-1] + ', "more": None}',
    "not JSON: comment": lambda text: "{ // the answer\n" + text[1:],
    "not JSON: NaN": lambda text: text[:-1] + ', "more": NaN}',
    "not JSON: cut off": lambda text: text[:-1],
    "two documents": lambda text: f"{text}\n{text}",
    "within a list": lambda text: f"[{text}]",
}


def _draw(rng: random.Random) -> Task:
    table = _properties(rng)
    names = rng.sample(list(table), 4)
    *needed, optional = names
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: table[name][0] for name in names},
        "required": needed,
        "additionalProperties": False,
    }
    document = {name: rng.choice(table[name][1]) for name in names}
    short = {name: document[name] for name in needed}
    others = [{**document, name: value} for name in names for value in table[name][1]]
    wrong = {
        f"wrong value: {name}": [json.dumps({**document, name: value}) for value in table[name][2]] for name in names
    }
    text = json.dumps(document)
    wrong |= {family: [spoil(text)] for family, spoil in _SPOILT.items()}
    wrong["a property missing"] = [json.dumps({key: document[key] for key in names if key != name}) for name in needed]
    wrong["a property more"] = [json.dumps(document | {"other": 1}), json.dumps(document | {needed[0].upper(): 1})]
    wrong["a property twice"] = [f'{text[:-1]}, "{needed[0]}": {json.dumps(document[needed[0]])}}}']
    right = {
        "itself": [text],
        "another document": [json.dumps(one) for one in others],
        "without the optional property": [json.dumps(short)],
        "indented": [json.dumps(one, indent=2) for one in (document, short)],
        "another order": [json.dumps(dict(reversed(document.items())), separators=(",", ":"))],
        "characters as they are": [json.dumps(one, ensure_ascii=False) for one in others],
    }
    prompt = f"Answer with a JSON object that fits this schema:\n{json.dumps(schema)}"
    return Task(optional, prompt, {"schema": schema}, right, wrong)


DOCUMENTS = Field(_draw, fenced("json", bare=True))
