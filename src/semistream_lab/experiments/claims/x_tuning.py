"""Claims of the X-HYBRIDJOIN paper about its tuning: the two parts of the disk buffer, the model, and what it gains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Float64Array
from semistream_lab.experiments.claims.comparing import (
    ahead_or_not,
    decided,
    deviations,
    explained,
    has_one_maximum,
    lead,
    listed,
    place,
    rises,
)
from semistream_lab.experiments.claims.tolerances import CLOSE, COUNTED, NOISE, SMALL_DEVIATION, TIE
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.judging import Finding, claim
from semistream_lab.experiments.predictions import PREDICTED, PRINTED

_GRID = "x-4"
_X, _H = "X-HYBRIDJOIN", "HYBRIDJOIN"
_WRONG_IN_PRINT = (
    "The printed number of matches has the variance p(1-p) of a match in place of its probability p, and takes the "
    "page group that is read as any page group, though that of the oldest tuple has gathered matches for longest"
)


@dataclass(frozen=True)
class Grid:
    """The tuning grid: a rate for each size of the pinned part (d_N) and of the swappable part (d_S), in bytes."""

    pinned: list[int]
    swappable: list[int]
    rates: dict[tuple[int, int], float]
    """By pinned and swappable bytes; a pinned part smaller than one read does not exist."""

    def over_pinned(self, swappable: int) -> tuple[list[int], list[float]]:
        """Return the rates of one size of the swappable part."""
        sizes = [size for size in self.pinned if (size, swappable) in self.rates]
        return sizes, [self.rates[size, swappable] for size in sizes]

    @property
    def best(self) -> tuple[int, int]:
        """The pinned and swappable bytes with the highest rate."""
        return max(self.rates, key=lambda sizes: self.rates[sizes])


def _grid(evidence: Evidence) -> Grid:
    """Return the grid by the sizes that the runs had: the pinned part holds whole reads, and one at least."""
    rates: dict[tuple[int, int], float] = {}
    columns: set[int] = set()
    reads: set[int] = set()
    for series in evidence.series(_GRID):
        for x in evidence.xs(_GRID):
            read = round(evidence.value(_GRID, series, x, "memory_disk_buffer"))
            wanted = round(evidence.value(_GRID, series, x, "memory_cache"))
            pinned = wanted // read * read
            # Sizes of different reads are the same size if they differ by less than a read of 13 pages does.
            pinned = next((known for known in columns if abs(known / pinned - 1) < 0.1), pinned)
            columns.add(pinned)
            reads.add(read)
            rates.setdefault((pinned, read), evidence.value(_GRID, series, x))
    return Grid(sorted(columns), sorted(reads), rates)


def _kb(size_bytes: float) -> str:
    return f"{size_bytes / 1e3:,.0f} kB"


def _parts(sizes: tuple[int, int]) -> str:
    pinned, swappable = sizes
    return f"{_kb(round(pinned / swappable) * swappable)} pinned and {_kb(swappable)} swappable"


@claim(
    49,
    _GRID,
    "Over the size of the pinned part the rate rises fast and then falls gradually.",
    "for every swappable part with five sizes of the pinned part or more, the rate has one maximum inside (1% of noise "
    "allowed) and changes by more for each byte before it than behind it",
)
def a_best_pinned_part(evidence: Evidence) -> Finding:
    grid = _grid(evidence)
    curves = {size: grid.over_pinned(size) for size in grid.swappable}
    tops = {size: _rise_and_fall(*curve) for size, curve in curves.items() if len(curve[0]) >= 5}
    parts = [
        f"{_kb(size)} reads: +{rise:.0%} to {_kb(top)}, then -{fall:.0%}" for size, (_, rise, fall, top) in tops.items()
    ]
    failing = [_kb(size) for size, (holds, *_) in tops.items() if not holds]
    reason = (
        f"With reads of {', '.join(failing)} the rate does not rise faster than it falls: a pinned part of one read, "
        "the smallest that there is here, answers nearly as many tuples as larger ones."
    )
    if evidence.ranks == "shuffled":
        reason = "The first pages are no hotter than others, so that pinning more of them costs more than it saves."
    left_out = ", ".join(_kb(size) for size in curves if size not in tops)
    note = f"Not judged with reads of {left_out}: pinned parts below one read, where the rise would be, do not exist."
    holds = bool(tops) and not failing
    return Finding(holds, "; ".join(parts), note if holds else reason)


def _rise_and_fall(sizes: list[int], rates: list[float]) -> tuple[bool, float, float, int]:
    """Say whether there is one maximum with a steeper rise than fall; return rise, fall and its place, too."""
    top = int(np.argmax(rates))
    rise, fall = (rates[top] - rates[0]) / rates[0], (rates[top] - rates[-1]) / rates[top]
    if not has_one_maximum(rates, NOISE):
        return False, rise, fall, sizes[top]
    before = (rates[top] - rates[0]) / (sizes[top] - sizes[0])
    behind = (rates[top] - rates[-1]) / (sizes[-1] - sizes[top])
    return before > behind, rise, fall, sizes[top]


@claim(
    50,
    "x-4-large",
    "Over the size of the swappable part the rate rises and then falls.",
    "at 250 MB, where the fall is within what a read may take (a sixteenth of memory), the rate has one maximum inside",
)
def a_best_swappable_part(evidence: Evidence) -> Finding:
    sizes, rates = evidence.xs("x-4-large"), evidence.curve("x-4-large", _X)
    top = int(rates.argmax())
    measured = ", ".join(f"{rates[index]:,.0f} tuples/s at {_kb(sizes[index])}" for index in (0, top, -1))
    note = "At 50 MB only the rise is seen: it lasts up to the largest read that is allowed."
    reason = "The rate does not rise and then fall inside the range of sizes that fit into a sixteenth of the memory."
    holds = has_one_maximum(rates, NOISE)
    return Finding(holds, measured, note if holds else reason)


@claim(
    51,
    _GRID,
    "The best setting is where the separate maxima of the two parts meet.",
    "the pair of the separately best sizes, each averaged over the other part, is within 2% of the best of the grid",
)
def the_maxima_meet(evidence: Evidence) -> Finding:
    grid = _grid(evidence)
    # Only sizes that exist for all sizes of the other part can be averaged over it.
    pinned = [size for size in grid.pinned if all((size, read) in grid.rates for read in grid.swappable)]
    by_pinned = {size: np.mean([grid.rates[size, read] for read in grid.swappable]) for size in pinned}
    by_swappable = {read: np.mean([grid.rates[size, read] for size in pinned]) for read in grid.swappable}
    met = max(by_pinned, key=lambda size: by_pinned[size]), max(by_swappable, key=lambda read: by_swappable[read])
    share = grid.rates[met] / grid.rates[grid.best]
    measured = f"{_parts(met)} give {share:.1%} of the best ({_parts(grid.best)})"
    reason = (
        "The best pinned part depends on the swappable one: the longer a read takes, the less it matters what probing "
        "the pinned part costs in each iteration."
    )
    return decided(bool(share >= 1 - TIE), measured, reason)


@claim(
    52,
    _GRID,
    "Two equal parts are not the best division.",
    "the best setting of the grid has unequal parts and is more than 2% above the best with equal ones",
)
def equal_parts_are_not_best(evidence: Evidence) -> Finding:
    grid = _grid(evidence)
    equal = {sizes: rate for sizes, rate in grid.rates.items() if abs(sizes[0] / sizes[1] - 1) < 0.1}
    best_equal = max(equal, key=lambda sizes: equal[sizes])
    gain = grid.rates[grid.best] / equal[best_equal] - 1
    untuned = grid.rates[grid.best] / equal[min(equal)] - 1
    measured = (
        f"best {_parts(grid.best)}: {gain:+.1%} over two parts of {_kb(best_equal[1])}, {untuned:+.1%} over two of "
        f"{_kb(min(equal)[1])}"
    )
    reason = "Once the swappable part has its best size, a pinned part of the same size is within 2% of the best."
    return decided(gain > TIE, measured, reason)


def _model(evidence: Evidence, experiment: str) -> Finding:
    """Judge that the printed model deviates by half a percent or so: by no more than 1% on average."""
    printed, ours = (np.abs(deviations(evidence, experiment, _X, column)) for column in (PRINTED, PREDICTED))
    holds = bool(printed.mean() <= SMALL_DEVIATION)
    reason = f"{_WRONG_IN_PRINT}; the corrected model deviates by {ours.mean():.1%}."
    return decided(holds, f"{printed.mean():.1%} on average, {printed.max():.1%} at most", reason)


@claim(53, "x-6a", "Over the swappable part the model deviates by 0.5%.", "by at most 1% on average")
def model_over_the_swappable_part(evidence: Evidence) -> Finding:
    return _model(evidence, "x-6a")


@claim(54, "x-6b", "Over the pinned part the model deviates by 0.6%.", "by at most 1% on average")
def model_over_the_pinned_part(evidence: Evidence) -> Finding:
    return _model(evidence, "x-6b")


def _tuned_is_above(evidence: Evidence, experiment: str) -> Finding:
    ahead = lead(evidence, experiment, "tuned", ("untuned",))
    measured = f"{ahead.min_ratio:.2f} to {ahead.max_ratio:.2f} times the untuned rate"
    where = place(evidence, experiment, ahead.place)
    reason = f"At {where} {explained(evidence, experiment, 'tuned', 'untuned', ahead.place)}."
    return ahead_or_not(ahead, measured, where, reason)


@claim(55, "x-7a", "Tuned X-HYBRIDJOIN is above untuned at every size of R.", "above at every size")
def tuning_pays_at_every_size(evidence: Evidence) -> Finding:
    return _tuned_is_above(evidence, "x-7a")


@claim(56, "x-7b", "Tuned X-HYBRIDJOIN is above untuned at every memory size.", "above at every size")
def tuning_pays_at_every_memory(evidence: Evidence) -> Finding:
    return _tuned_is_above(evidence, "x-7b")


@claim(
    57,
    "x-8",
    "The predicted cost is close to the measured cost.",
    "the paper's formula within 5% at every memory size, untuned and tuned",
)
def prediction_is_close(evidence: Evidence) -> Finding:
    series = evidence.series("x-8")
    printed, ours = (_worst(evidence, series, column) for column in (PRINTED, PREDICTED))
    holds = float(printed.max()) <= CLOSE
    reason = f"{_WRONG_IN_PRINT}; the corrected model is off by {ours.max():.1%} at most."
    parts = [f"{name} {worst:.1%}" for name, worst in zip(series, printed, strict=True)]
    return decided(holds, "off by at most " + ", ".join(parts), reason)


def _worst(evidence: Evidence, series: list[str], column: str) -> Float64Array:
    return np.array([np.abs(deviations(evidence, "x-8", name, column)).max() for name in series])


@claim(
    58,
    "x-5",
    "The probability of a match falls along R.",
    "each tenth of R matches at most as often as the one before (2% of noise allowed), the last less than the first",
    priced=False,
)
def match_probability_falls(evidence: Evidence) -> Finding:
    matching = evidence.curve("x-5", _H)
    holds = rises(matching[::-1], COUNTED) and matching[0] > 1.1 * matching[-1]
    reason = "Where R is not stored in order of use, hot tuples are spread over all page groups."
    return decided(holds, f"{listed(matching[[0, 1, -1]] * 1e4)} in 10,000 in the first, second and last tenth", reason)
