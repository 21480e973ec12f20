"""Finds columns by their names as Spark does: capitals matter only if `spark.sql.caseSensitive` says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from semistream.core.errors import NameClashError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ColumnNames:
    """The rule of a session for names."""

    case_sensitive: bool

    @classmethod
    def of(cls, session: SparkSession) -> ColumnNames:
        """Return the rule that a session has now."""
        return cls(str(session.conf.get("spark.sql.caseSensitive", "false")).lower() == "true")

    def key(self, name: str) -> str:
        """Return what is equal for two names of one column."""
        return name if self.case_sensitive else name.lower()

    def spelled(self, name: str, known: Sequence[str]) -> str:
        """Return the name as one of those that are known is written; a name that is not known stays as it is."""
        if name in known:
            return name
        return next((other for other in known if self.key(other) == self.key(name)), name)

    def all_spelled(self, names: Sequence[str], known: Sequence[str]) -> list[str]:
        """Return all names as those that are known are written."""
        return [self.spelled(name, known) for name in names]

    def renaming(self, pairs: Mapping[str, str], ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
        """Return pairs of names as the columns on both sides are written."""
        return {self.spelled(one, ours): self.spelled(other, theirs) for one, other in pairs.items()}

    def check_distinct(self, names: Sequence[str], added: Sequence[bool]) -> None:
        """Raise NameClashError if a column that is added has the name of another one but for capitals."""
        for place, name in enumerate(names):
            others = (other for at, other in enumerate(names) if at != place and self.key(other) == self.key(name))
            if added[place] and (clash := next(others, None)) is not None:
                raise NameClashError(
                    f"The columns {clash!r} and {name!r} are the same to Spark, which ignores case: set "
                    f"`suffix`, choose another name, or set spark.sql.caseSensitive to true."
                )
