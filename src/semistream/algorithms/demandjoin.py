"""DEMANDJOIN: read what is waited for most, in runs.

Ours. The sparse index tells the page of a tuple when it arrives, so the demand of every page is known exactly: how many
tuples wait for it, and since when. Reads are planned from that: the runs of neighbouring pages that serve most for what
they cost (docs/algorithms/demandjoin.md).

Recipe: planned runs, tuple cache by frequency of late, refill, one phase after the other.

Deviations: none, it has no paper.
"""

from semistream.algorithms.shared_parameters import CACHE_SHARE
from semistream.engine.parameters import Flag, Number, Values, Whole, named
from semistream.engine.recipe import Phases, Recipe, Running, Setting, TupleCaching
from semistream.engine.sizing.split import AS_SUITS, MemoryShare, Runs, Split, TupleSpace
from semistream.policies.caching import FrequentLately, LessUsedOverwrite
from semistream.policies.contract import Admission, Intake, PageChoice
from semistream.policies.page_choice import PlannedRuns
from semistream.policies.phasing import Refill, WithinDeadline

RUNS_SHARE = Number(
    "runs_share", 0, low=0, high=0.5, about="share of the memory that one read may bring; 0 for what suits the disk"
)
SHARE = Number(
    "share", 0.3, low=0.001, high=1, about="share of the waiting tuples that a plan serves before the next one is made"
)
BALANCE = Flag(
    "balance", True, about="memory moves between cached and waiting tuples; a table that fits is cached as a whole"
)
PAGES = Flag("pages", True, about="parts of the table stay in memory as whole pages where that saves more reads")
MAX_WINDOWS = Whole(
    "max_windows", 128, low=1, high=100_000, about="counts of uses are halved after so many windows of tuples at most"
)
AGE = Flag("age", True, about="what waits longer is worth more to a plan")
GAPS = Flag("gaps", True, about="a read may bring pages between two runs where that costs less than a second request")
ABSENT = Flag("absent", True, about="keys that are not in the master table are cached as well")
DEADLINE = Number("deadline", 0, low=0, high=1e9, about="seconds that a tuple should wait at most; 0 for no limit")
IN_FLIGHT = Whole("in_flight", 4, low=0, high=64, about="requests that may be under way at once; 0 reads nothing ahead")
MEASURED = Flag("measured", True, about="in real time, plans go by what reads have cost, not by a usual disk")
THREADS = Whole(
    "threads", 0, low=0, high=2, about="1 takes tuples in and reads in turn, 2 side by side; 0 for what suits the clock"
)
HANDOVER_SHARE = Number(
    "handover_share", 0, low=0, high=0.1, about="share of the memory between two threads; 0 for what suits the reads"
)


def _planned_runs(setting: Setting) -> PageChoice:
    return PlannedRuns(
        request_seconds=setting.costs.seek_seconds,
        page_group_seconds=max(1e-12, setting.page_group_bytes / setting.costs.bytes_per_second),
        run_page_groups=setting.run_page_groups,
        share=setting[SHARE],
        by_age=setting[AGE],
        gaps=setting[GAPS],
        deadline_seconds=setting[DEADLINE],
    )


def _intake(setting: Setting) -> Intake:
    deadline, costs = setting[DEADLINE], setting.costs
    if not deadline:
        return Refill()
    page_group_seconds = setting.page_group_bytes / costs.bytes_per_second
    if setting.page_group_count * page_group_seconds < deadline / 2:  # even a scan of the table comes in time
        return Refill()
    return WithinDeadline(deadline, first=int(deadline / 4 / (costs.seek_seconds + page_group_seconds)))


def _admission(setting: Setting) -> Admission:
    return FrequentLately(setting.cache_tuples, max_windows=setting[MAX_WINDOWS])


def _running(values: Values) -> Running:
    phases = {0: Phases.BY_CLOCK, 1: Phases.IN_TURN, 2: Phases.SIDE_BY_SIDE}[values[THREADS]]
    return Running(
        # A deadline bounds how many tuples wait, which one thread must know when a tuple comes.
        phases=Phases.IN_TURN if values[DEADLINE] else phases,
        shares_probes=True,
        in_flight=values[IN_FLIGHT],
        measures_reads=values[MEASURED],
        balances=values[BALANCE],
        keeps_pages=values[BALANCE] and values[PAGES],
        remembers_absent=values[ABSENT],
    )


def _split(values: Values) -> Split:
    share = values[CACHE_SHARE]
    # Beside rows no balance makes the cache smaller, and their buffers leave half of the memory to share.
    beside_rows = share if values.is_given(CACHE_SHARE) else share / 2
    return Split(
        Runs(MemoryShare(values[RUNS_SHARE]) if values[RUNS_SHARE] else AS_SUITS),
        cache=TupleSpace(
            MemoryShare(share),
            memory_beside_rows=MemoryShare(beside_rows),
            policy_bytes=FrequentLately.ENTRY_BYTES,
            table_if_it_fits=values[BALANCE],
        ),
        handover=MemoryShare(values[HANDOVER_SHARE]) if values[HANDOVER_SHARE] else AS_SUITS,
        page_group_bytes=8,
    )


DEMANDJOIN = Recipe(
    name="demandjoin",
    summary="reads the runs of pages that serve most for their cost; caches what was asked for often of late",
    paper="semistream",
    page_choice=_planned_runs,
    intake=_intake,
    caching=TupleCaching(_admission, lambda _: LessUsedOverwrite()),
    running=_running,
    split=_split,
    in_order=frozenset({CACHE_SHARE.name, MAX_WINDOWS.name, ABSENT.name}),
    tunes_itself=True,
    loads_by_key=False,
    parameters=named(
        RUNS_SHARE,
        CACHE_SHARE.with_default(0.2),
        SHARE,
        BALANCE,
        PAGES,
        MAX_WINDOWS,
        AGE,
        GAPS,
        ABSENT,
        DEADLINE,
        IN_FLIGHT,
        MEASURED,
        THREADS,
        HANDOVER_SHARE,
    ),
)
