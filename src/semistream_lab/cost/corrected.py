"""The corrected cost models: what the model clock charges, in steady state."""

from __future__ import annotations

from collections.abc import Mapping

from semistream.algorithms.registry import algorithm_named
from semistream.core.costs import CostProfile
from semistream.engine.sizing.split import WholeTable
from semistream.policies.page_choice import EveryTuple, FullSlot, PlannedRuns, Ring
from semistream.policies.phasing import Batchwise
from semistream_lab.cost import block_models, demand_model, queue_models, scan_models
from semistream_lab.cost.division import Division, divide
from semistream_lab.cost.prediction import Prediction
from semistream_lab.cost.queue_models import Iteration
from semistream_lab.cost.situation import Situation

STANDARD_QUEUES = 10.0
"""How long a measurement is: so many times the queue's size leave through the disk phase."""
_DERIVATION = "docs/algorithms/cost_models.md"


def predict(
    algorithm: str,
    situation: Situation,
    costs: CostProfile,
    parameters: Mapping[str, float] | None = None,
    *,
    queues: float = STANDARD_QUEUES,
) -> Prediction:
    """Return what an algorithm does on a stream that never makes it wait.

    `queues` matters for caches that learn: their hits are the mean of a measurement of that length, after the usual
    warm-up; infinity stands for the steady state, which a cache larger than what its threshold admits reaches late.
    The queue is always taken to be in its steady state, which a measurement reaches after some tens of queues.
    """
    division = divide(algorithm_named(algorithm), situation, costs, parameters)
    iteration = _modelled(division, queues)
    return Prediction(
        algorithm=algorithm,
        formula="corrected",
        service_rate=iteration.tuples / iteration.seconds,
        tuples_per_iteration=iteration.tuples,
        seconds_per_iteration=iteration.seconds,
        cached_share=iteration.cached_share,
        waiting_slots=division.waiting_slots,
        memory=division.memory,
        source=_DERIVATION,
    )


def _modelled(division: Division, queues: float) -> Iteration:
    recipe = division.recipe
    if isinstance(recipe.split(division.setting.values).cache, WholeTable):
        return queue_models.all_in_memory(division)
    choice = recipe.page_choice(division.setting)
    if isinstance(choice, EveryTuple):
        return scan_models.single_look_ups(division)
    if isinstance(choice, Ring):
        return scan_models.ring(division)
    if isinstance(choice, FullSlot):
        return block_models.full_slots(division)
    if isinstance(choice, PlannedRuns):
        return demand_model.planned_runs(division)
    if isinstance(recipe.intake(division.setting), Batchwise):
        return block_models.batches(division, queues)
    return queue_models.refilled_queue(division, queues)
