"""Columns as a file writes them, "product_id BIGINT, quantity INT", checked before Spark is there to parse them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.toml_table import TomlTable, suggestion

OWN_PREFIX = "_semistream"
"""Columns of a source may not begin so: those that do are ours."""
_TYPES = (
    *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real"),
    *("double", "decimal", "dec", "numeric", "date", "time", "timestamp", "timestamp_ntz", "timestamp_ltz"),
    *("string", "char", "character", "varchar", "binary", "interval", "void", "variant", "array", "map", "struct"),
    *("geography", "geometry"),
)
_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`:<>(),]+))\s*:?\s*(.*)", re.DOTALL)
_WORD = re.compile(r"\s*(\w+)\s*(.*)", re.DOTALL)
_PARTS_OF = {"array": 1, "map": 2}
_PAIRS = {"(": ")", "<": ">"}


@dataclass(frozen=True)
class WrittenSchema:
    """The names of columns, in their order; types are known to be ones of Spark, and parsed by Spark."""

    columns: tuple[str, ...]

    @classmethod
    def read(cls, table: TomlTable, key: str, text: str) -> WrittenSchema:
        """Return the columns of a text, or raise an error that names the word that is wrong."""
        try:
            columns = tuple(_columns(text))
        except ValueError as error:
            raise table.wrong(key, f"is not a list of columns: {error}") from None
        seen: set[str] = set()
        for name in columns:
            if name.lower() in seen:
                raise table.wrong(key, f"has two columns {name!r}: give one of them another name")
            if name.lower().startswith(OWN_PREFIX) or name.lower() == "_metadata":
                raise table.wrong(key, f"cannot have the column {name!r}: rename it")
            seen.add(name.lower())
        return cls(columns)

    @staticmethod
    def names(text: str) -> tuple[str, ...]:
        """Return the names in a text that was read before."""
        try:
            return tuple(_columns(text))
        except ValueError as error:
            raise InvalidSettingError(f"A schema is not a list of columns: {error}.") from None


def _columns(text: str) -> Iterator[str]:
    for part in _divided(text):
        match = _COLUMN.fullmatch(part)
        if match is None or not part.strip():
            raise ValueError(f"{part.strip()[:60]!r} is not a column such as 'quantity INT'")
        name = match[1].replace("``", "`") if match[1] is not None else match[2]
        if not match[3].strip():
            raise ValueError(f"the column {name[:60]!r} has no type")
        _check_type(match[3])
        yield name


def _check_type(text: str) -> None:
    match = _WORD.fullmatch(text)
    word = match[1].lower() if match is not None else text.strip()[:60]
    if word not in _TYPES:
        raise ValueError(f"{word.upper()!r} is not a type, {suggestion(word, _TYPES).rstrip('.')}")
    rest = match[2] if match is not None else ""
    if not rest.startswith("<"):
        if word in _PARTS_OF:
            raise ValueError(f"{word.upper()} must say of what, such as {word.upper()}<{_example(word)}>")
        return
    inner = rest[1 : _closing(rest)]
    if word == "struct":
        for _ in _columns(inner) if inner.strip() else ():
            pass
        return
    parts = _divided(inner)
    if len(parts) != _PARTS_OF.get(word, len(parts)):
        raise ValueError(f"{word.upper()} must have {_PARTS_OF[word]} types in its brackets")
    for part in parts:
        _check_type(part)


def _example(word: str) -> str:
    return "STRING" if word == "array" else "STRING, BIGINT"


def _divided(text: str) -> list[str]:
    """Return the parts between commas that stand in no brackets and no quotes."""
    parts, begin, open_brackets, quote = [], 0, [], ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "`'\"":
            quote = character
        elif character in _PAIRS:
            open_brackets.append(_PAIRS[character])
        elif character in _PAIRS.values():
            if not open_brackets or open_brackets.pop() != character:
                raise ValueError(f"the bracket {character!r} closes nothing")
        elif character == "," and not open_brackets:
            parts.append(text[begin:place])
            begin = place + 1
    if quote or open_brackets:
        raise ValueError(f"{quote or open_brackets[-1]!r} is missing at the end")
    return [*parts, text[begin:]]


def _closing(text: str) -> int:
    """Return where the bracket closes that a text begins with."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if depth == 0:
            return place
    raise ValueError("'>' is missing at the end")
