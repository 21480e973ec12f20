"""Results that were never measured, so that judges can be shown curves of any shape."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace

from semistream.core.costs import PAPERS, Operations
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.plan import all_plans
from semistream_lab.experiments.point import Scalar

Numbers = Callable[[str, float], Mapping[str, Scalar]]


def made_up(*, ranks: str = "sorted", **experiments: Numbers) -> Evidence:
    """Return evidence in which each experiment (with _ for -) has the numbers that its function gives, of one seed."""
    plans = {name: replace(plan, seeds=plan.seeds[:1]) for name, plan in all_plans().items()}
    rows: dict[str, Mapping[str, Scalar]] = {}
    for name, numbers in experiments.items():
        plan = plans[name.replace("_", "-")]
        for planned in plan.points(variants=False):
            if planned.point.ranks == ranks or ranks not in plan.ranks:
                rows[planned.point.digest] = numbers(planned.series, planned.x)
    return Evidence(plans, rows.get, ranks=ranks)


def run_of(rate: float, *, tuples_per_read: float = 500, reads: int = 1000, **more: Scalar) -> dict[str, Scalar]:
    """Return the row of a run with this service rate."""
    tuples = tuples_per_read * reads
    operations = Operations(
        seeks=reads, bytes_read=reads * 106_080, probes=reads * 884, outputs=tuples, takes=tuples, appends=tuples / 3
    )
    row: dict[str, Scalar] = {
        "service_rate": rate,
        "confidence": rate / 100,
        "seconds": tuples / rate,
        "tuples": tuples,
        "iterations": reads,
        "read_requests": reads,
        "bytes_read": reads * 106_080,
        "cache_hits": tuples / 2,
        "waiting_slots": 290_000,
    }
    row.update({f"operations_{field.name}": getattr(operations, field.name) for field in fields(operations)})
    return {**row, **more}


def read_seconds() -> float:
    """Return what a read of 884 rows takes on the papers' machine."""
    return PAPERS.read_seconds(106_080)
