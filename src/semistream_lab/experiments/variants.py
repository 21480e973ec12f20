"""Cost profiles with a constant halved or doubled, to see which claims hang on the assumed machine."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Variant:
    """A change of the cost constants."""

    name: str
    factors: tuple[tuple[str, float], ...]


AS_ASSUMED = Variant("as assumed", ())
VARIANTS = tuple(
    Variant(f"{group} {word}", tuple((constant, factor) for constant in constants))
    for group, constants in _GROUPS.items()
    for word, factor in (("halved", 0.5), ("doubled", 2.0))
)
