"""Settings that a verdict may hang on: constants of the machine, the law of the keys, where a read begins."""

from __future__ import annotations

from dataclasses import dataclass

from semistream.algorithms.registry import ALGORITHMS
from semistream_lab.experiments.point import LAW, PARTITIONS, Point

PROCESSOR = (
    "probe_seconds",
    "output_seconds",
    "remove_seconds",
    "take_seconds",
    "append_seconds",
    "frequency_seconds",
    "hand_over_seconds",
)
"""What the processor does, by the names of a profile's constants."""
_GROUPS = {
    "seek": ("seek_seconds",),
    "sequential request": ("request_seconds",),
    "bandwidth": ("bytes_per_second",),
    "processor": PROCESSOR,
}
_KINDS_READ_FROM_A_KEY = ("rate", "arrivals", "pinned-part", "disk-bound", "page-reads", "page-use")
"""Kinds of measurement that are also run with reads from the key on."""


@dataclass(frozen=True)
class Variant:
    """A change of what an experiment assumes."""

    name: str
    factors: tuple[tuple[str, float], ...] = ()
    """Constants of the machine that are multiplied."""
    option: str = ""
    """An option of points that has another value."""
    value: str | None = None

    def of(self, point: Point) -> Point:
        """Return the run of a point with another option: the point itself where that changes nothing."""
        if self.option == LAW and point.law == "integral":
            return point.with_option(LAW, self.value)
        if self.option == PARTITIONS and reads_by_key(point):
            return point.with_option(PARTITIONS, self.value)
        return point


AS_ASSUMED = Variant("as assumed")
MACHINES = tuple(
    Variant(f"{group} {word}", tuple((constant, factor) for constant in constants))
    for group, constants in _GROUPS.items()
    for word, factor in (("halved", 0.5), ("doubled", 2.0))
) + tuple(
    Variant(f"processor {word}", tuple((constant, factor) for constant in PROCESSOR))
    for word, factor in (("five times as fast", 0.2), ("five times as slow", 5.0))
)
"""Other machines: how fast a processor was beside its disk is the least known of all."""
DISCRETE_KEYS = Variant("discrete keys", option=LAW, value=None)
"""Keys by Zipf's law and not by the papers' generator."""
FROM_THE_KEY_ON = Variant("reads from the key on", option=PARTITIONS, value="from-key")
"""The other reading of "load a partition using that value as an index": a read begins where the key is."""
SETTINGS = (DISCRETE_KEYS, FROM_THE_KEY_ON)
"""Variants whose runs do something else, not only at other costs."""


def reads_by_key(point: Point) -> bool:
    """Say whether a run looks partitions of the table up by keys, so that it matters where such a read begins."""
    if point.kind == "hard-inputs":
        return True
    return point.kind in _KINDS_READ_FROM_A_KEY and point.data == "zipf" and ALGORITHMS[point.algorithm].loads_by_key
