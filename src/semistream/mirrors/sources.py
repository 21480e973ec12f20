"""The kinds of sources, by their names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.core.local_paths import local_path_of, scheme_of
from semistream.mirrors.database import DatabaseSource
from semistream.mirrors.delta import DeltaSource
from semistream.mirrors.files import FileSource
from semistream.mirrors.kafka import KafkaSource
from semistream.mirrors.source_description import MirrorSource

_KINDS: dict[str, type[MirrorSource]] = {
    kind.kind: kind for kind in (FileSource, DatabaseSource, DeltaSource, KafkaSource)
}
_SCHEMES = {"postgresql": "database", "mysql": "database"}
"""What addresses begin with, where that is not the kind."""


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


def source_at(address: str) -> MirrorSource:
    """Return the source that an address means: a path, or what starts with the kind of a source and a colon."""
    scheme = scheme_of(address)
    if scheme is None and ":" in address and address.partition(":")[0] in _KINDS:
        scheme = address.partition(":")[0]
    if scheme is None or scheme == "file":
        return FileSource.of_address(address)
    return source_kind(_SCHEMES.get(scheme, scheme)).of_address(address)


def source_from_settings(settings: str | Mapping[str, Any], folder: Path) -> MirrorSource:
    """Return the source that a pipeline's file describes; its paths are relative to the folder of the file."""
    if isinstance(settings, str):
        source = source_at(settings)
        settings = {"kind": source.kind, **source.described()} if source.kind != "files" else {"path": settings}
    described = {"kind": "files", **settings}
    for name in source_kind(str(described["kind"])).path_settings:
        if name in described:
            described[name] = _absolute(described[name], folder)
    return source_of(described)


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, list | tuple):
        return [_absolute(one, folder) for one in value]
    if not isinstance(value, str | os.PathLike) or scheme_of(os.fspath(value)) not in (None, "file"):
        return value
    return str(folder / local_path_of(value, "Sources"))
