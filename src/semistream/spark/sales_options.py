"""The options of the data source `semistream-sales`, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from semistream.core.errors import InvalidSettingError
from semistream.generator.sales_plan import ARRIVALS, RANKS, SalesPlan
from semistream.generator.settings import number_from, one_of, positive_number, share_of_one, whole_number

FORMAT = "semistream-sales"
_NOW = "now"
_MAX_ROWS_PER_BATCH = 1_000_000


@dataclass(frozen=True)
class SalesOptions:
    """What a stream of sales is like, where it ends, and how it is cut into batches and tasks."""

    plan: SalesPlan
    starts_now: bool
    rows: int | None
    rows_per_batch: int | None
    max_rows_per_batch: int
    partitions: int

    @classmethod
    def parse(cls, options: Mapping[str, str], default_partitions: int) -> SalesOptions:
        """Return the options that were given as texts, or raise InvalidSettingError naming the one that is wrong."""
        names = {name.lower(): name for name in (*_PLAN_OPTIONS, *_BATCH_OPTIONS)}
        given = {}
        for name, text in options.items():
            if name.lower() not in names:
                raise InvalidSettingError(
                    f"{FORMAT} has no option {name!r}: choose from {', '.join(sorted(names.values()))}."
                )
            given[names[name.lower()]] = text
        if "products" not in given:
            raise InvalidSettingError(f"{FORMAT} needs the option products: the number of products in the catalogue.")
        if "rowsPerBatch" in given and "maxRowsPerBatch" in given:
            raise InvalidSettingError("rowsPerBatch fixes the size of a batch already: leave maxRowsPerBatch out.")
        starts_now = given.get("start", "").strip().lower() == _NOW
        if starts_now:
            del given["start"]
        batch = {name: read(name, given[name]) for name, read in _BATCH_OPTIONS.items() if name in given}
        settings = {
            setting: read(name, given[name]) for name, (setting, read) in _PLAN_OPTIONS.items() if name in given
        }
        return cls(
            plan=SalesPlan(**settings),
            starts_now=starts_now,
            rows=batch.get("rows"),
            rows_per_batch=batch.get("rowsPerBatch"),
            max_rows_per_batch=batch.get("maxRowsPerBatch", _MAX_ROWS_PER_BATCH),
            partitions=batch.get("partitions", default_partitions),
        )

    @property
    def max_rows(self) -> int:
        """The most rows that a micro-batch may have."""
        return self.max_rows_per_batch if self.rows_per_batch is None else self.rows_per_batch

    @property
    def fingerprint(self) -> str:
        """A short text that is the same for options that give the same rows.

        It leaves out what has its default, so that a setting that is new in a later version keeps old checkpoints.
        """
        chosen = [
            f"{field.name}={getattr(self.plan, field.name)}"
            for field in sorted(fields(self.plan), key=lambda field: field.name)
            if getattr(self.plan, field.name) != field.default
        ]
        return sha256(repr([*chosen, self.starts_now]).encode()).hexdigest()[:16]


def _whole(minimum: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        try:
            return whole_number(name, int(text), minimum=minimum)
        except ValueError:
            raise InvalidSettingError(
                f"{name} must be a whole number of at least {minimum}, but {text!r} was given."
            ) from None

    return read


def _choice(choices: tuple[str, ...]) -> Callable[[str, str], str]:
    return lambda name, text: one_of(name, text.strip().lower(), choices)


def _number(check: Callable[[str, float], float]) -> Callable[[str, str], float]:
    def read(name: str, text: str) -> float:
        try:
            return check(name, float(text))
        except ValueError:
            raise InvalidSettingError(f"{name} must be a number, but {text!r} was given.") from None

    return read


def _from_zero(name: str, value: float) -> float:
    return number_from(name, value, minimum=0)


def _date(name: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidSettingError(
            f"{name} must be a date such as 2026-01-01T08:00:00Z, or now, but {text!r} was given."
        ) from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


_PLAN_OPTIONS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "products": ("products", _whole(1)),
    "exponent": ("exponent", _number(_from_zero)),
    "ranks": ("ranks", _choice(RANKS)),
    "stride": ("stride", _whole(1)),
    "absent": ("absent", _number(share_of_one)),
    "seed": ("seed", _whole(0)),
    "rate": ("rate", _number(positive_number)),
    "arrivals": ("arrivals", _choice(ARRIVALS)),
    "stepSeconds": ("step_seconds", _number(positive_number)),
    "onSeconds": ("on_seconds", _number(positive_number)),
    "offSeconds": ("off_seconds", _number(_from_zero)),
    "start": ("start", _date),
}
_BATCH_OPTIONS: dict[str, Callable[[str, str], int]] = {
    "rows": _whole(0),
    "rowsPerBatch": _whole(1),
    "maxRowsPerBatch": _whole(1),
    "partitions": _whole(1),
}
