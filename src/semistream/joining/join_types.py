"""The kinds of joins under the names that users give them."""

from __future__ import annotations

from semistream.core.errors import InvalidSettingError
from semistream.engine.output.output_plan import JOIN_TYPES

_AS_IN_SPARK = {
    "inner": "inner",
    "left": "left",
    "leftouter": "left",
    "semi": "semi",
    "leftsemi": "semi",
    "anti": "anti",
    "leftanti": "anti",
}
_WITH_MASTER_ROWS_ALONE = {"outer", "full", "fullouter", "right", "rightouter"}


def join_type(how: object) -> str:
    """Return inner, left, semi or anti for any name that Spark has for them, such as left_outer or leftsemi."""
    # As Spark reads it: capitals and underscores do not matter.
    name = how.lower().replace("_", "") if isinstance(how, str) else ""
    if name in _AS_IN_SPARK:
        return _AS_IN_SPARK[name]
    choices = f"choose one of {', '.join(JOIN_TYPES)}"
    if name in _WITH_MASTER_ROWS_ALONE:
        raise InvalidSettingError(
            f"{how!r} is not a join type here, because it would add the master rows that no stream row ever "
            f"matches: {choices}."
        )
    raise InvalidSettingError(f"{how!r} is not a join type: {choices}.")
