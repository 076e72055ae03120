"""Frames, series and indexes of pandas as plain data: labels and columns are sent as arrays, and rebuilt on the other side.

Columns may be of numpy's types, texts, categories, numbers and truth values that may be missing, and times with a zone. Nothing
else of the program's is sent with them: no class, no attributes, no pickle. Frames and series are shared like other mutable
containers.

Imported only where pandas is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy
import pandas

from . import arrays, codec
from .codec import Decoder, Encoder, Kind, NotPlainError, Wire

_MISSABLE = re.compile(r"U?Int(8|16|32|64)|Float(32|64)|boolean")
_LABELLED = (pandas.DataFrame, pandas.Series, pandas.Index)
_MOST_FREQUENCY = 20
"""Characters."""


def _encode_values(encoder: Encoder, labelled: Any) -> Wire:
    """Encode the values of a column or an index; NotPlainError if they cannot be sent, as objects can't."""
    dtype = labelled.dtype
    if isinstance(dtype, numpy.dtype):
        return _encode_array(encoder, labelled.to_numpy())
    if isinstance(dtype, pandas.CategoricalDtype):
        categories = _encode_index(encoder, dtype.categories)
        return ["ea", "category", dtype.ordered is True, categories, _encode_array(encoder, labelled.array.codes)]
    if isinstance(dtype, pandas.DatetimeTZDtype):
        zone = encoder.encode(dtype.tz)
        if zone[0] in ("tz", "v"):
            times = labelled.array.tz_convert(None)
            return ["ea", "zoned", zone, _encode_array(encoder, numpy.asarray(times))]
    elif isinstance(dtype, pandas.StringDtype) or _MISSABLE.fullmatch(str(dtype)):
        items = [None if missing else item for item, missing in zip(labelled.tolist(), labelled.isna(), strict=True)]
        return ["ea", dtype.name, *items]
    raise NotPlainError(f"a column or an index of type {dtype} cannot be sent")


def _encode_array(encoder: Encoder, value: Any) -> Wire:
    _, *wire = arrays.encode(encoder, value)
    if any(type(item) is list and item[:1] == ["h"] for item in wire):
        raise NotPlainError("a column or an index that holds objects cannot be sent")
    return ["na", *wire]


def _decode_array(decoder: Decoder, wire: Wire) -> Any:
    kind = codec.KINDS_BY_TAG[arrays.ARRAY]
    value = kind.make(wire)
    kind.fill(value, [decoder.decode(item) for item in wire[3:]])
    return value


def _decode_values(decoder: Decoder, wire: Wire) -> Any:
    """Make an array of one of the types of pandas itself; raise some exception if the wire describes none."""
    _, name, *content = wire
    if name == "category":
        ordered, categories, codes = content
        return pandas.Categorical.from_codes(decoder.decode(codes), decoder.decode(categories), ordered=ordered is True)
    if name == "zoned":
        zone, times = map(decoder.decode, content)
        return pandas.DatetimeIndex(times, tz="UTC").tz_convert(zone).array
    if name not in ("str", "string") and not _MISSABLE.fullmatch(name):
        raise ValueError(f"not a type of columns: {name!r}")
    return pandas.array(content, dtype=name)


def _encode_index(encoder: Encoder, value: Any) -> Wire:
    levels = [_encode_values(encoder, value.get_level_values(number)) for number in range(value.nlevels)]
    return ["ix", encoder.encode(tuple(value.names)), getattr(value, "freqstr", None), *levels]


def _decode_index(decoder: Decoder, wire: Wire) -> Any:
    _, names, frequency, *levels = wire
    names, levels = decoder.decode(names), [decoder.decode(level) for level in levels]
    if len(levels) > 1:
        return pandas.MultiIndex.from_arrays(levels, names=names)
    made: Any = pandas.Index(levels[0], dtype=levels[0].dtype, name=names[0])
    return made if frequency is None else type(made)(made, freq=frequency[:_MOST_FREQUENCY])


def _encode_frame(encoder: Encoder, value: Any) -> Wire:
    columns = (_encode_values(encoder, value.iloc[:, number]) for number in range(value.shape[1]))
    return ["df", _encode_index(encoder, value.index), _encode_index(encoder, value.columns), *columns]


def _fill_frame(value: Any, content: list[Any]) -> None:
    index, labels, *columns = content
    made = pandas.DataFrame({n: _series(column, index) for n, column in enumerate(columns)}, index=index)
    made.columns = labels
    value._update_inplace(made)


def _encode_series(encoder: Encoder, value: Any) -> Wire:
    return ["sr", _encode_index(encoder, value.index), encoder.encode(value.name), _encode_values(encoder, value)]


def _fill_series(value: Any, content: list[Any]) -> None:
    index, value.name, values = content
    value._update_inplace(_series(values, index))


def _series(values: Any, index: Any) -> Any:
    if len(values) != len(index):
        raise ValueError("a column must be as long as its index")
    return pandas.Series(values, index=index, dtype=values.dtype)


_CONTAINERS: dict[Any, tuple[str, Callable[[Encoder, Any], Wire], Callable[[Any, list[Any]], None]]] = {
    pandas.DataFrame: ("df", _encode_frame, _fill_frame),
    pandas.Series: ("sr", _encode_series, _fill_series),
}


def _empty(cls: Any) -> Callable[[Wire], Any]:
    return lambda _: cls(dtype=object)


def _snapshot(value: Any) -> bytes:
    """The content of a frame or a series, in the form that `shared_containers` compares."""
    return repr(_CONTAINERS[type(value)][1](Encoder(lambda other: ["h", id(other)]), value)).encode("utf-8", "replace")


def encode_or_none(encoder: Encoder, value: object) -> Wire:
    """Encode a value for a codec that does not know frames; None if it is not a frame, a series or an index."""
    if type(value) in _CONTAINERS:
        return encoder.reference(value) or _CONTAINERS[type(value)][1](encoder, value)
    return _encode_index(encoder, value) if isinstance(value, pandas.Index) else None


def _scalar(decoder: Decoder, wire: Wire) -> object:
    return pandas.Series(decoder.decode(wire[1])).iloc[0]


def same(result: Any, expected: Any) -> bool | None:
    """Whether frames, series or indexes are the same, with their types and labels; None if neither value is one."""
    if not (isinstance(expected, _LABELLED) or isinstance(result, _LABELLED)):
        return None
    return type(result) is type(expected) and bool(result.equals(expected))


def install() -> None:
    """Let frames, series, indexes and times be sent, and frames and series be shared like other containers."""
    for cls, (tag, encode, fill) in _CONTAINERS.items():
        codec.add_kind(cls, Kind(tag, _snapshot, _empty(cls), fill, encoded=encode))
    arrays.compared += _LABELLED
    for name in ("", "Range", "Multi", "Datetime", "Categorical", "Timedelta"):
        codec.add_value(getattr(pandas, f"{name}Index"), "ix", _encode_index, _decode_index)
    for cls in (pandas.Timestamp, pandas.Timedelta, type(pandas.NaT)):
        codec.add_value(
            cls, "ps", lambda encoder, value: ["ps", _encode_values(encoder, pandas.Series([value]))], _scalar
        )
    codec.add_value(type(pandas.NA), "ps", lambda *_: ["ps", ["ea", "Int64", None]], _scalar)
    codec.add_decoder("na", _decode_array)
    codec.add_decoder("ea", _decode_values)
