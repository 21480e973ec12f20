"""One run of the lab, and all that decides its outcome."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Literal

from semistream.core.costs import CostProfile
from semistream.core.errors import InvalidSettingError

Scalar = str | int | float | bool | None
LAW, PARTITIONS = "law", "partitions"
"""The options that say how keys are drawn, and where a read begins that looks a page up by a key."""
Law = Literal["discrete", "integral"]
"""How keys are drawn: by Zipf's law, or by inverting the integral of 1/x^e as the papers do."""
Partitions = Literal["aligned", "from-key"]
Row = Mapping[str, Scalar]
"""What a run gave: one flat object."""


@dataclass(frozen=True)
class Point:
    """One run: two points that are equal give the same result on the model clock, whichever experiment they are of."""

    kind: str = "rate"
    """What is measured; `measuring.kinds` knows the kinds."""
    algorithm: str = ""
    master_rows: int = 2_000_000
    memory_bytes: int = 50_000_000
    exponent: float = 1.0
    ranks: Literal["sorted", "shuffled"] = "sorted"
    clock: str = "model"
    profile: str = "papers"
    factors: tuple[tuple[str, float], ...] = ()
    """Constants of the profile that are multiplied."""
    parameters: tuple[tuple[str, float], ...] = ()
    """Knobs of the algorithm."""
    tuned: bool = False
    """The knobs that are not given are set by the tuner for this very point."""
    data: str = "zipf"
    arrival_rate: float = 0.0
    """Tuples a second; 0 for a stream that never makes the join wait."""
    queues: float = 10.0
    """The measurement lasts until so many times what can wait has passed the disk phase."""
    tuples: int = 0
    """The least tuples to measure."""
    seed: int = 0
    options: tuple[tuple[str, str | float], ...] = ()
    """What only this kind of measurement needs."""

    @cached_property
    def digest(self) -> str:
        """A name that equal points share and others do not."""
        return digest_of(asdict(self))

    def option(self, name: str, default: float = 0.0) -> float:
        """Return an option that is a number."""
        return float(dict(self.options).get(name, default))

    @property
    def law(self) -> Law:
        """The law of generated keys."""
        return "integral" if dict(self.options).get(LAW) == "integral" else "discrete"

    @property
    def partitions(self) -> Partitions:
        """What a read for a key brings: the aligned partition that has the key, or as much from the key on."""
        return "from-key" if dict(self.options).get(PARTITIONS) == "from-key" else "aligned"

    def without_options(self, *names: str) -> Point:
        """Return the point without some of its options."""
        return replace(self, options=tuple(option for option in self.options if option[0] not in names))

    def with_option(self, name: str, value: str | float | None) -> Point:
        """Return the point with another value of an option, or without it."""
        others = self.without_options(name)
        return others if value is None else replace(others, options=tuple(sorted([*others.options, (name, value)])))

    def to_json(self) -> dict[str, object]:
        """Return the point as an object for JSON."""
        return asdict(self)


def digest_of(point: Mapping[str, object]) -> str:
    """Return the name of a point that was written as JSON."""
    text = json.dumps(point, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def varied(profile: CostProfile, factors: tuple[tuple[str, float], ...]) -> CostProfile:
    """Return a profile with some of its constants multiplied."""
    changed = {}
    for name, factor in factors:
        if not hasattr(profile, name):
            raise InvalidSettingError(f"A cost profile has no constant {name!r}.")
        changed[name] = getattr(profile, name) * factor
    return replace(profile, **changed)
