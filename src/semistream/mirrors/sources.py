"""The kinds of sources, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.mirrors.files import FileSource
from semistream.mirrors.source_description import MirrorSource

_KINDS: dict[str, type[MirrorSource]] = {kind.kind: kind for kind in (FileSource,)}


def source_kind(kind: str) -> type[MirrorSource]:
    """Return the class of a kind of source, or raise InvalidSettingError."""
    if kind not in _KINDS:
        raise InvalidSettingError(f"{kind!r} is not a kind of source: choose one of {', '.join(_KINDS)}.")
    return _KINDS[kind]


def source_of(description: Mapping[str, Any]) -> MirrorSource:
    """Return the source that a manifest or a pipeline's file describes, with its kind."""
    kind = source_kind(str(description.get("kind")))
    try:
        return kind.of_description({name: value for name, value in description.items() if name != "kind"})
    except SemistreamError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidSettingError(f"This is not the description of a {kind.kind} source: {error!r}.") from None
