"""The cost models as the papers print them, each beside its equations; sizes are the engine's.

Paper numbers: HYBRIDJOIN (near-real-time data warehousing), X-HYBRIDJOIN (efficient processing of streaming updates),
OPTX (Optimised X-HYBRIDJOIN), OP (optimising CACHEJOIN by parallelism). The papers print their sums for an exponent of
1, as logarithms; at any other exponent the exact sums of Zipf's law stand in their place. What is wrong with the
formulas is told in docs/algorithms/cost_models.md; nothing is mended here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from semistream.algorithms.registry import algorithm_named
from semistream.core.costs import CostProfile, Operations
from semistream_lab.cost.division import Division, divide
from semistream_lab.cost.prediction import Prediction
from semistream_lab.cost.queue_models import Iteration
from semistream_lab.cost.situation import Situation

_EULER = 0.5772156649  # γ
_HYBRIDJOIN_FACTOR = 1.36  # k


def printed_prediction(
    algorithm: str,
    situation: Situation,
    costs: CostProfile,
    parameters: Mapping[str, float] | None = None,
    *,
    observed_tuples: float | None = None,
) -> Prediction | None:
    """Return what the paper's own formula says; None if no paper prints one, or all of the table is cached.

    The formula of Optimised X-HYBRIDJOIN takes the tuples of an iteration, S/N, from a run: `observed_tuples`. Without
    a run they follow from its other equations.
    """
    recipe = algorithm_named(algorithm)
    if algorithm not in _FORMULAS:
        return None
    formula, source = _FORMULAS[algorithm]
    division = divide(recipe, situation, costs, parameters)
    if _all_cached(division):
        return None
    if algorithm == "optimised-x-hybridjoin" and observed_tuples is not None and situation.exponent == 1:
        if not _can_be_doubled(division):
            return None
        formula, source = _with_observed_tuples(observed_tuples), _OPTX_OBSERVED
    iteration = formula(division)
    return Prediction(
        algorithm=algorithm,
        formula="printed",
        service_rate=iteration.tuples / iteration.seconds,
        tuples_per_iteration=iteration.tuples,
        seconds_per_iteration=iteration.seconds,
        cached_share=iteration.cached_share,
        waiting_slots=division.waiting_slots,
        memory=division.memory,
        source=source,
    )


def _hybridjoin(division: Division) -> Iteration:
    """Eq. 2: w = k·h_S·d/R_t with k = 1.36; Eq. 3: c_loop; Eq. 4: μ = w/c_loop."""
    rows = _buffer_rows(division)
    tuples = _HYBRIDJOIN_FACTOR * division.waiting_slots * rows / division.situation.master_rows
    done = Operations(outputs=tuples, removals=tuples, takes=tuples, appends=tuples)
    return Iteration(tuples, 0.0, _read(division, rows, probed=rows) + division.costs.seconds(done))


def _x_hybridjoin(division: Division) -> Iteration:
    """Eq. 2 (untuned) and 5 (tuned): c_loop; Eq. 3 and 6: μ = w/c_loop; w by Eqs. 7, 8 and 9 in both cases.

    Eq. 9 has p(1 − p), a variance, where a mean needs p.
    """
    rows = _buffer_rows(division)  # d_S
    pinned = rows * division.sizes.cache_blocks  # d_N
    total = division.situation.master_rows
    page_groups = (total - pinned) / rows  # n
    cached = _sum(division, pinned) / _sum(division, total)  # p_N, the sums as ln m + γ
    old = 1 / page_groups  # Eq. 7
    new = cached + (1 - cached) / page_groups  # Eq. 8
    tuples = division.waiting_slots * old * (1 - old) / (1 + old * (1 - old) - new * (1 - new))  # Eq. 9
    done = Operations(outputs=tuples, removals=tuples, takes=tuples, appends=tuples)
    return Iteration(tuples, cached, _read(division, rows, probed=rows + pinned) + division.costs.seconds(done))


def _optimised_x_hybridjoin(division: Division) -> Iteration:
    """Eqs. 2 and 3, w_N and w_S by Eqs. 4 and 7 where nothing is observed."""
    served, cached = _phases(division)
    return _in_two_phases(division, served, cached * served / (1 - cached), cached)


def _with_observed_tuples(tuples: float) -> Callable[[Division], Iteration]:
    """Return the formula as printed, with S/N as observed: Eqs. 5 and 6 for w_N, 8 and 9 for w_S.

    The power laws have no constant factor. Their exponents are log2 of the factors by which Eqs. 4 and 7 change when a
    size is doubled; from which sizes the paper doubled is not printed, here it is from those of the run.
    """

    def formula(division: Division) -> Iteration:
        total, cached_tuples, rows = _sizes(division)
        hit, match = _hit_probability, _match_probability
        cached = total ** _doubling(hit(2 * total, cached_tuples), hit(total, cached_tuples))
        cached *= cached_tuples ** _doubling(hit(total, 2 * cached_tuples), hit(total, cached_tuples))  # Eq. 5
        matching = match(total, cached_tuples, rows)
        served = rows ** _doubling(match(total, cached_tuples, 2 * rows), matching)
        served *= cached_tuples ** _doubling(match(total, 2 * cached_tuples, rows), matching)
        served *= total ** _doubling(match(2 * total, cached_tuples, rows), matching)  # Eq. 8
        return _in_two_phases(division, served * division.waiting_slots, cached * tuples, cached)  # Eqs. 9 and 6

    return formula


def _can_be_doubled(division: Division) -> bool:
    """Say whether there is a table left beside twice the cached tuples, so that Eqs. 5 and 8 can be fitted."""
    total, cached_tuples, rows = _sizes(division)
    return cached_tuples >= 2 and total - 2 * cached_tuples >= 2 * rows


def _doubling(doubled: float, single: float) -> float:
    """Return the exponent of the power law that doubling a size shows."""
    return math.log2(doubled / single)


def _hit_probability(total: float, cached_tuples: float) -> float:
    """Eq. 4: p_N."""
    return math.log(cached_tuples) / math.log(total)


def _match_probability(total: float, cached_tuples: float, rows: float) -> float:
    """Eq. 7: p_S."""
    page_groups = (total - cached_tuples) / rows  # n
    return (math.log(total) - math.log(cached_tuples + 1)) / (page_groups * (math.log(total) + _EULER))


def _in_two_phases(division: Division, served: float, hits: float, cached: float) -> Iteration:
    """Eq. 2: c_loop; Eq. 3: μ = (w_N + w_S)/c_loop.

    A miss is not charged for its probe of the cache.
    """
    done = Operations(probes=hits, outputs=served + hits, removals=served, takes=served + hits, appends=served)
    rows = _buffer_rows(division)
    return Iteration(served + hits, cached, _read(division, rows, probed=rows) + division.costs.seconds(done))


def _cachejoin(division: Division) -> Iteration:
    """Eq. 2 without c_AI, which the paper adds for its parallel variants."""
    return _parallel(division, handed_over=False, read_part=1.0)


def _p_cachejoin(division: Division) -> Iteration:
    """Eq. 2: c_loop, the costs of both phases added up; Eq. 3: μ = (w_N + w_S)/c_loop."""
    return _parallel(division, handed_over=True, read_part=1.0)


def _op_cachejoin(division: Division) -> Iteration:
    """Eq. 2 with ½·c_IO(d)."""
    return _parallel(division, handed_over=True, read_part=0.5)


def _parallel(division: Division, *, handed_over: bool, read_part: float) -> Iteration:
    """Eq. 2 of the OP paper; it does not print w_S and w_N, so they are those of the OPTX paper."""
    served, cached = _phases(division)
    hits = cached * served / (1 - cached)
    rows = _buffer_rows(division)
    done = Operations(
        probes=rows + hits,
        frequency_checks=rows,
        outputs=served + hits,
        removals=served,
        takes=served + hits,
        appends=served,
        hand_overs=served if handed_over else 0.0,
    )
    seconds = read_part * _read(division, rows, probed=0.0) + division.costs.seconds(done)
    return Iteration(served + hits, cached, seconds)


def _phases(division: Division) -> tuple[float, float]:
    """Return w_S and p_N by the OPTX paper.

    Eq. 4: p_N = ln h_R / ln R_t. Eq. 6: w_N = p_N·S/N, S/N being all tuples of an iteration, so w_N = p_N(w_N + w_S).
    Eq. 7: p_S = (ln R_t − ln(h_R + 1)) / (n(ln R_t + γ)), n page groups being in the R_t − h_R tuples left, though the
    queue holds only tuples for these; Eq. 9: w_S = p_S·h_S. Eqs. 5 and 8 replace Eqs. 4 and 7 by power laws that were
    fitted to them; they stand where S/N is observed.
    """
    total, cached_tuples, rows = _sizes(division)
    if division.situation.exponent == 1:
        cached = _hit_probability(total, max(1.0, cached_tuples))
        matching = _match_probability(total, cached_tuples, rows)
    else:
        cached = division.shares.of_first_ranks(division.sizes.cache_tuples)
        matching = (1 - cached) * rows / (total - cached_tuples)
    return matching * division.waiting_slots, cached


def _sizes(division: Division) -> tuple[float, float, float]:
    """Return R_t, h_R and d, in tuples."""
    return float(division.situation.master_rows), float(division.sizes.cache_tuples), _buffer_rows(division)


def _all_cached(division: Division) -> bool:
    """Say whether no two page groups are left to read, so that the formulas make no sense."""
    cached_rows = max(division.sizes.cache_tuples, division.sizes.cache_blocks * _buffer_rows(division))
    return division.situation.master_rows - cached_rows < 2 * _buffer_rows(division)


def _sum(division: Division, count: float) -> float:
    """Return the sum of 1/x^e: ln m + γ as printed for e = 1, else the exact sum, up to a factor."""
    if division.situation.exponent == 1:
        return math.log(max(1.0, count)) + _EULER if count >= 1 else 0.0
    return division.shares.of_first_ranks(round(count))


def _buffer_rows(division: Division) -> float:
    """Return d: the rows of a full page group."""
    return float(division.bounds[1] - division.bounds[0])


def _read(division: Division, rows: float, *, probed: float) -> float:
    """Return c_IO(d·v_R) + probed·c_H."""
    return division.costs.seconds(Operations(seeks=1, bytes_read=rows * division.situation.row_bytes, probes=probed))


_OPTX_OBSERVED = "Optimised X-HYBRIDJOIN, Eqs. 1 to 9, S/N as observed"
_FORMULAS: Mapping[str, tuple[Callable[[Division], Iteration], str]] = {
    "hybridjoin": (_hybridjoin, "HYBRIDJOIN for near-real-time data warehousing, Eqs. 1 to 4"),
    "x-hybridjoin": (_x_hybridjoin, "Efficient processing of streaming updates, Eqs. 1 to 3, w by Eqs. 7 to 9"),
    "x-hybridjoin-tuned": (_x_hybridjoin, "Efficient processing of streaming updates, Eqs. 4 to 9"),
    "optimised-x-hybridjoin": (_optimised_x_hybridjoin, "Optimised X-HYBRIDJOIN, Eqs. 1 to 4, 6, 7 and 9"),
    "cachejoin": (_cachejoin, "Optimising CACHEJOIN by parallelism, Eq. 2 without c_AI; w by Optimised X-HYBRIDJOIN"),
    "p-cachejoin": (_p_cachejoin, "Optimising CACHEJOIN by parallelism, Eqs. 1 to 3; w by Optimised X-HYBRIDJOIN"),
    "op-cachejoin": (
        _op_cachejoin,
        "Optimising CACHEJOIN by parallelism, Eqs. 1 to 3 with half of c_IO; w by Optimised X-HYBRIDJOIN",
    ),
}
