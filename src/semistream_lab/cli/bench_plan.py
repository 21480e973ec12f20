"""What a bench shall measure: options that have been checked against each other."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from semistream.core.errors import InvalidSettingError

DEFAULT_MASTER_ROWS = 2_000_000
DEFAULT_TUPLES = 2_000_000
DEFAULT_ROW_BYTES = 120
DEFAULT_PAGE_BYTES = 8192
SMALLEST_ROW_BYTES = 24


class Ranks(StrEnum):
    """Where the frequent keys are stored."""

    SORTED = "sorted"
    SHUFFLED = "shuffled"


class ClockKind(StrEnum):
    """Which time is measured."""

    WALL = "wall"
    MODEL = "model"


class Accounting(StrEnum):
    """How memory is counted."""

    REAL = "real"
    PAPERS = "papers"


class StoreKind(StrEnum):
    """Where the master table is kept."""

    MEMORY = "memory"
    FILE = "file"


@dataclass(frozen=True)
class BenchPlan:
    """One bench: the algorithms, the master table, the stream, and how it is measured."""

    algorithms: tuple[str, ...]
    whole_family: bool
    """All algorithms were asked for; one that cannot run is left out."""
    memory_bytes: int
    zipf: float
    ranks: Ranks
    absent: float
    tuples: int | None
    """How many tuples to measure; None if the time is given."""
    seconds: float | None
    clock: ClockKind
    accounting: Accounting
    profile: str | None
    """The costs on the model clock; on the wall clock a store to imitate, or None."""
    store: StoreKind
    master: str | None
    """An existing table; None for a generated one."""
    master_rows: int
    row_bytes: int
    page_bytes: int
    direct: bool
    payload: bool
    seed: int
    tuned: bool = False
    """Parameters that are not given are set by the cost model of each algorithm."""
    parameters: Mapping[str, float] = field(default_factory=dict)

    def parameters_of(self, known: Container[str]) -> dict[str, float]:
        """Return the given parameters that an algorithm with these parameters has."""
        return {name: value for name, value in self.parameters.items() if name in known}


def chosen_algorithms(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas, in its order; "all" is the whole family."""
    from semistream.algorithms.registry import ALGORITHMS, algorithm_named

    if text.strip() == "all":
        return tuple(ALGORITHMS)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidSettingError("No algorithm is named: give --algorithm NAME[,NAME] or --algorithm all.")
    return tuple(dict.fromkeys(algorithm_named(name).name for name in names))


def parsed_parameters(texts: Sequence[str], algorithms: Sequence[str]) -> dict[str, float]:
    """Return name=value pairs as numbers; at least one of the algorithms must have each."""
    from semistream.algorithms.registry import ALGORITHMS

    known = {name for algorithm in algorithms for name in ALGORITHMS[algorithm].parameters}
    parameters: dict[str, float] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        number = _value(value)
        if not equals or number is None:
            raise InvalidSettingError(
                f"{text!r} is not a parameter: write --parameter name=value with a number, true or false as value."
            )
        if name not in known:
            raise InvalidSettingError(
                f"None of the algorithms has a parameter {name!r}: they have {', '.join(sorted(known)) or 'none'}."
            )
        parameters[name] = number
    return parameters


def _value(text: str) -> float | None:
    """Return a number, or True or False; None if the text is neither."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return None
