"""Which master columns a pipeline was started with, so that drift of the master table is noticed."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from semistream.core.errors import SchemaDriftError
from semistream.pipeline.description import DimensionDescription
from semistream.pipeline.remembered import Remembered


class RememberedColumns:
    """The columns of a master that a pipeline uses: those of now at its first start, those of then at any later one.

    A column that the master table has gained since is left out; one that is gone or has another type is an error. An
    edited [[dimension]] is a new beginning, because whoever edits it wants other columns.
    """

    def __init__(
        self,
        dimension: DimensionDescription,
        schema: pa.Schema,
        key: tuple[str, ...],
        remembered: Remembered | None,
        place: int = 0,
    ) -> None:
        """Make them of the dimension that stands at a place in the file."""
        self._dimension = dimension
        self._types = {field.name: str(field.type) for field in schema}
        self._key = key
        self.fingerprint = _fingerprint(dimension)
        known = remembered is not None and place < len(remembered.joins)
        if remembered is not None and known and remembered.joins[place] == self.fingerprint:
            self._is_new = False
            self.used: Mapping[str, str] = remembered.columns[place]
            self._check(self.used)
        else:
            self._is_new = True
            self.used = self._used_now()

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The argument `columns` for `enrich`; None leaves the choice to it."""
        dimension = self._dimension
        if dimension.columns is not None or self._is_new or not _adds_columns(dimension):
            return dimension.columns
        replaced = set((dimension.replace or {}).values())
        return tuple(name for name in self.used if name not in self._key and name not in replaced)

    def _used_now(self) -> dict[str, str]:
        dimension = self._dimension
        wanted = [*self._key]
        if _adds_columns(dimension):
            added = self._types if dimension.columns is None else dimension.columns
            wanted += [*(dimension.replace or {}).values(), *added]
        return {name: self._types[name] for name in dict.fromkeys(wanted) if name in self._types}

    def _check(self, remembered: Mapping[str, str]) -> None:
        for name, kind in remembered.items():
            now = self._types.get(name)
            if now == kind:
                continue
            what = "no longer has the column" if now is None else f"has {now} and no longer {kind} in the column"
            raise SchemaDriftError(
                f"The master table {what} {name!r} that this pipeline was started with: restore it, or edit "
                f"[[dimension]] columns and start afresh with another checkpoint and another path in [sink]."
            )


def _adds_columns(dimension: DimensionDescription) -> bool:
    return dimension.how in ("inner", "left")


def _fingerprint(dimension: DimensionDescription) -> dict[str, object]:
    """Return what of [[dimension]] decides on the columns of the output, as JSON gives it back."""
    on = dimension.on
    return {
        "on": dict(on) if isinstance(on, Mapping) else [on] if isinstance(on, str) else list(on),
        "adds_columns": _adds_columns(dimension),
        "columns": None if dimension.columns is None else list(dimension.columns),
        "replace": dict(dimension.replace or {}),
        "suffix": dimension.suffix,
    }
