"""DEMANDJOIN: read what is waited for most, in runs.

Ours. The sparse index tells the page of a tuple when it arrives, so the demand of every page is known exactly: how many
tuples wait for it, and since when. Reads are planned from that: the runs of neighbouring pages that serve most for what
they cost (docs/algorithms/demandjoin.md).

Recipe: planned runs, tuple cache by frequency of late, refill, one phase after the other.

Deviations: none, it has no paper.
"""

from semistream.engine.recipe import Recipe, Setting, TupleCaching
from semistream.engine.sizing import Split
from semistream.policies.caching import FrequentLately, LessUsedOverwrite
from semistream.policies.contract import Admission, Intake, PageChoice
from semistream.policies.page_choice import PlannedRuns
from semistream.policies.phasing import Refill, WithinDeadline


def _planned_runs(setting: Setting) -> PageChoice:
    return PlannedRuns(
        request_seconds=setting.costs.seek_seconds,
        partition_seconds=max(1e-12, setting.partition_bytes / setting.costs.bytes_per_second),
        run_partitions=setting.run_partitions,
        share=setting["share"],
        by_age=bool(setting["age"]),
        gaps=bool(setting["gaps"]),
        deadline_seconds=setting["deadline"],
    )


def _intake(setting: Setting) -> Intake:
    deadline, costs = setting["deadline"], setting.costs
    if not deadline:
        return Refill()
    partition_seconds = setting.partition_bytes / costs.bytes_per_second
    if setting.partition_count * partition_seconds < deadline / 2:  # even a scan of the table comes in time
        return Refill()
    return WithinDeadline(deadline, first=int(deadline / 4 / (costs.seek_seconds + partition_seconds)))


def _admission(setting: Setting) -> Admission:
    return FrequentLately(setting.cache_tuples, most_windows=int(setting["most_windows"]))


DEMANDJOIN = Recipe(
    name="demandjoin",
    summary="reads the runs of pages that serve most for their cost; caches what was asked for often of late",
    paper="semistream",
    page_choice=_planned_runs,
    intake=_intake,
    caching=TupleCaching(_admission, lambda _: LessUsedOverwrite()),
    split=lambda parameters: Split(
        runs_share=parameters["runs_share"] or None,
        cache_share=parameters["cache_share"],
        cached_tuple_bytes=FrequentLately.ENTRY_BYTES,
        partition_bytes=8,
        handover_share=parameters["handover_share"] or None,
        table_if_it_fits=bool(parameters["balance"]),
    ),
    keeps_order=True,
    parameters={
        "runs_share": 0,
        "cache_share": 0.2,
        "share": 0.3,
        "balance": 1,
        "most_windows": 128,
        "age": 1,
        "gaps": 1,
        "absent": 1,
        "deadline": 0,
        "in_flight": 4,
        "measured": 1,
        "threads": 0,
        "handover_share": 0,
    },
)
