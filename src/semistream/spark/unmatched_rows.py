"""What becomes of rows for which the master table has no match."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from semistream.core.errors import InvalidSettingError, SemistreamError

Unmatched: TypeAlias = Literal["keep", "drop", "fail", "park", "dead_letters"]
_DEFAULTS: dict[str, Unmatched] = {"inner": "drop", "left": "keep", "semi": "drop", "anti": "keep"}
_CONTRARY = {("inner", "keep"): "left", ("left", "drop"): "inner"}


class UnmatchedRowError(SemistreamError):
    """A row has no match, and `unmatched` is "fail"."""


def checked_unmatched(unmatched: str | None, how: str, *, has_room: bool, has_dead_letters: bool) -> Unmatched:
    """Return what becomes of rows without a match; raises InvalidSettingError if it does not fit the rest."""
    if unmatched is None:
        return _DEFAULTS[how]
    if unmatched not in get_args(Unmatched):
        raise InvalidSettingError(
            f"{unmatched!r} is not what can become of unmatched rows: choose keep, drop, fail, park or dead_letters."
        )
    if unmatched == _DEFAULTS[how]:
        return _DEFAULTS[how]
    if (how, unmatched) in _CONTRARY:
        raise InvalidSettingError(
            f"{_article(how)} join cannot {unmatched} unmatched rows: set how to {_CONTRARY[how, unmatched]!r}."
        )
    if how in ("semi", "anti"):
        raise InvalidSettingError(
            f"{_article(how)} join can only {_DEFAULTS[how]} unmatched rows: leave `unmatched` out, or set how to "
            f"'inner' or 'left'."
        )
    if unmatched == "park" and not has_room:
        raise InvalidSettingError("Parked rows need a place: give `room`, a folder beside the checkpoint.")
    if unmatched == "dead_letters" and not has_dead_letters:
        raise InvalidSettingError("Unmatched rows need a place: give `dead_letters`, a folder.")
    return unmatched  # type: ignore[return-value]


def _article(how: str) -> str:
    return f"{'An' if how[0] in 'aeiou' else 'A'} {how}"
