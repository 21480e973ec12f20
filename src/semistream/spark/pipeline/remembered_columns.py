"""Remembers beside a checkpoint which master columns a pipeline was started with, so that drift is noticed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semistream.core.errors import SchemaDriftError
from semistream.spark.pipeline import places
from semistream.spark.pipeline.description import JoinDescription, PipelineDescription
from semistream.store.master_table import MasterTable

FILE_NAME = "semistream.json"
_FORMAT = 1


class RememberedColumns:
    """The master's columns that a pipeline uses: those of now at its first start, those of then at any later one.

    A column that the master table has gained since is left out; one that is gone or has another type is an error. An
    edited [join] is a new beginning, because whoever edits it wants other columns.
    """

    def __init__(self, description: PipelineDescription) -> None:
        self._description = description
        with MasterTable(description.master).open() as store:
            self._types = {field.name: str(field.type) for field in store.schema}
            self._key = tuple(store.key)
        local = places.is_local(description.checkpoint)
        self._file = Path(description.checkpoint) / FILE_NAME if local else None
        remembered = self._read()
        self._is_new = remembered is None
        self._used = remembered if remembered is not None else self._used_now()
        if remembered is not None:
            self._check(remembered)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The argument `columns` for `enrich`; None leaves the choice to it."""
        join = self._description.join
        if join.columns is not None or self._is_new or not _adds_columns(join):
            return join.columns
        replaced = set((join.replace or {}).values())
        return tuple(name for name in self._used if name not in self._key and name not in replaced)

    def remember(self) -> None:
        """Write down what is used, unless it was written down before; a reader sees the whole file or none."""
        if self._file is None or not self._is_new:
            return
        found = {"format": _FORMAT, "join": _fingerprint(self._description.join), "columns": self._used}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._file.with_name(f".{FILE_NAME}.{os.getpid()}.tmp")
        temporary.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        temporary.replace(self._file)

    def _used_now(self) -> dict[str, str]:
        join = self._description.join
        wanted = [*self._key]
        if _adds_columns(join):
            wanted += [*(join.replace or {}).values(), *(self._types if join.columns is None else join.columns)]
        return {name: self._types[name] for name in dict.fromkeys(wanted) if name in self._types}

    def _read(self) -> dict[str, str] | None:
        if self._file is None or not self._file.is_file():
            return None
        try:
            found: Any = json.loads(self._file.read_text(encoding="utf-8"))
            columns = {str(name): str(kind) for name, kind in found["columns"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SchemaDriftError(
                f"{self._file} is damaged, so that nobody knows the columns the pipeline was started with: "
                f"remove it to take those of now."
            ) from None
        return columns if found.get("join") == _fingerprint(self._description.join) else None

    def _check(self, remembered: Mapping[str, str]) -> None:
        for name, kind in remembered.items():
            now = self._types.get(name)
            if now == kind:
                continue
            what = "no longer has the column" if now is None else f"has {now} and no longer {kind} in the column"
            raise SchemaDriftError(
                f"The master table {what} {name!r} that this pipeline was started with: bring it back, or edit "
                f"[join] columns and give [sink] a new path."
            )


def _adds_columns(join: JoinDescription) -> bool:
    return join.how in ("inner", "left")


def _fingerprint(join: JoinDescription) -> dict[str, object]:
    """Return what of [join] decides on the columns of the output, as JSON gives it back."""
    on = dict(join.on) if isinstance(join.on, Mapping) else [join.on] if isinstance(join.on, str) else list(join.on)
    return {
        "on": on,
        "adds_columns": _adds_columns(join),
        "columns": None if join.columns is None else list(join.columns),
        "replace": dict(join.replace or {}),
        "suffix": join.suffix,
    }
