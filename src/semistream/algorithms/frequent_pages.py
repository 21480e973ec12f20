"""HYBRIDJOIN-PQ and CACHEJOIN-PQ.

Paper: the queue of frequent pages (Optimising queue-based semi-stream joins by introducing a queue of frequent pages).
Pages with many matches are kept in a priority queue and read on schedule, each after as many new tuples as bring it a
threshold of matches; when none is due, the oldest tuple decides.

Recipe: due frequent page, else oldest; with and without a tuple cache; refill; one phase after the other.

Deviations: the frequency of a page glides, which the paper describes but leaves out of its measurements (`decay` 0
turns it off). Threshold and limits are not printed: the threshold is twice the mean matches of recent reads, a page
enters at twice the mean and leaves below half of it. The counter by which pages are due counts the tuples that entered
the queue (the paper names those processed, too). A page that is due while no tuple waits for it leaves the schedule
without a read, and one that is read because of its oldest tuple keeps its turn. CACHEJOIN-PQ admits to its cache by
matches per tuple entered, because a page that is read early shows fewer matches, and its threshold is half as large
again as CACHEJOIN's; the paper does not say that its cache differs (`rate` 0 takes CACHEJOIN's rule). The priority
queue has room for every page unless `room` says less; a page that finds it full stays outside. After 16 scheduled reads
in a row the oldest tuple has its turn, so that no tuple waits for ever.
"""

from semistream.algorithms.cachejoin import CACHE_PARAMETERS, above_threshold, random_overwrite, threshold
from semistream.algorithms.shared_parameters import READ_BYTES, read_size, tuple_space
from semistream.engine.parameters import Number, Tuning, Values, named
from semistream.engine.recipe import Recipe, Setting, TupleCaching
from semistream.engine.sizing.split import Split
from semistream.policies.caching import AboveRate
from semistream.policies.contract import Admission, PageChoice
from semistream.policies.page_choice import DueFrequent

_PAPER = "Naeem, Weber, Dobbie, Lutteroth: Optimising queue-based semi-stream joins by a queue of frequent pages"
DECAY = Number(
    "decay",
    0.9,
    low=0,
    high=0.999,
    about="weight of the past in the gliding frequency of a page; 0 keeps the frequency at which it entered",
)
EAGERNESS = Number(
    "eagerness",
    2.0,
    low=0.01,
    high=1000,
    about="a frequent page is due when it should bring so many times the mean matches of recent reads",
    tuning=Tuning(0.25, 16.0, by_model=False),
)
ENTRY = Number(
    "entry",
    2.0,
    low=0.01,
    high=1000,
    about="a page becomes a frequent one at so many times the mean matches of recent reads",
    tuning=Tuning(0.25, 16.0, by_model=False),
)
ROOM = Number(
    "room",
    1.0,
    low=1 / DueFrequent.NODE_BYTES,
    high=1,
    about="for how many of the pages the priority queue has room, as a share of all",
)
RATE = Number(
    "rate",
    1.5,
    low=0,
    high=1000,
    about="the cache admits above so many times CACHEJOIN's threshold, by rate; 0 for its rule, by matches of a read",
)
_QUEUE = named(DECAY, EAGERNESS, ENTRY, ROOM)
_LAST_READ_BYTES = 8


def _due_frequent(setting: Setting) -> PageChoice:
    return DueFrequent(
        decay=setting[DECAY] or None,
        eagerness=setting[EAGERNESS],
        entry=setting[ENTRY],
        max_pages=max(1, int(setting[ROOM] * setting.page_group_count)),
    )


def _node_bytes(values: Values) -> int:
    """Return the memory of the priority queue for each page of the table."""
    return round(values[ROOM] * DueFrequent.NODE_BYTES)


def _admission(setting: Setting) -> Admission:
    if not setting[RATE]:
        return above_threshold(setting)
    return AboveRate(round(setting[RATE] * threshold(setting)), setting.page_group_count)


HYBRIDJOIN_PQ = Recipe(
    name="hybridjoin-pq",
    summary="HYBRIDJOIN that reads frequent pages on schedule from a priority queue",
    paper=_PAPER,
    page_choice=_due_frequent,
    split=lambda values: Split(read_size(values), page_group_bytes=_node_bytes(values)),
    parameters={**named(READ_BYTES), **_QUEUE},
)

CACHEJOIN_PQ = Recipe(
    name="cachejoin-pq",
    summary="CACHEJOIN that reads frequent pages on schedule from a priority queue",
    paper=_PAPER,
    page_choice=_due_frequent,
    caching=TupleCaching(_admission, random_overwrite),
    split=lambda values: Split(
        read_size(values),
        cache=tuple_space(values),
        page_group_bytes=_node_bytes(values) + (_LAST_READ_BYTES if values[RATE] else 0),
    ),
    parameters={**CACHE_PARAMETERS, **_QUEUE, **named(RATE)},
)
