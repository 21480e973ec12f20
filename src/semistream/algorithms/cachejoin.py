"""CACHEJOIN and SSCJ.

Paper: Naeem, Dobbie, Weber: A lightweight stream-based join with limited resource consumption (CACHEJOIN); Naeem,
Weber, Dobbie, Lutteroth: SSCJ. As described in the papers on OP-CACHEJOIN and on the priority queue. Optimised
X-HYBRIDJOIN without a sorted master table: the cache starts empty, and a master tuple that matches more than a
threshold of waiting tuples in one read enters it. A full cache overwrites a random entry (CACHEJOIN) or the least
frequent one (SSCJ).

Recipe: oldest first, tuple cache with a threshold, refill, one phase after the other.

Deviations: the threshold is not printed. A master tuple of mean frequency matches in proportion to waiting tuples per
master row, so the default is 24 times that ratio, at least 3. A key that is asked for as often but is absent from the
master table is remembered in the cache, too. A key with several master rows is never cached. The tuples that one read
lets into a full cache overwrite others, never each other. SSCJ takes the least frequent entries as of its last scan of
the cache.
"""

from semistream.algorithms.shared_parameters import CACHE_SHARE, READ_BYTES, read_size, tuple_space
from semistream.engine.parameters import Tuning, Whole, named
from semistream.engine.recipe import Recipe, Setting, TupleCaching
from semistream.engine.sizing.split import Split
from semistream.policies.caching import AboveThreshold, LeastFrequentOverwrite, RandomOverwrite
from semistream.policies.contract import Admission, Replacement

THRESHOLD = Whole(
    "threshold",
    0,
    low=0,
    high=1e9,
    about="a master tuple that matches more waiting tuples in one read is cached; 0 for what suits the queue",
    tuning=Tuning(1.0, 64.0, also=(0.0,), together="cache"),
)
CACHE_PARAMETERS = named(READ_BYTES, CACHE_SHARE, THRESHOLD)


def threshold(setting: Setting) -> float:
    """Return the threshold that was set, or with 0 one that grows with the matches that reads bring."""
    return setting[THRESHOLD] or max(3, round(24 * setting.waiting_slots / setting.row_count))


def above_threshold(setting: Setting) -> Admission:
    """Admit by the matches of one read."""
    return AboveThreshold(threshold(setting))


def random_overwrite(setting: Setting) -> Replacement:
    """Overwrite at random, from the run's seed."""
    return RandomOverwrite(setting.seed)


CACHEJOIN = Recipe(
    name="cachejoin",
    summary="caches master tuples that match often; a full cache overwrites a random one",
    paper="Naeem, Dobbie, Weber: A lightweight stream-based join with limited resource consumption (CACHEJOIN)",
    caching=TupleCaching(above_threshold, random_overwrite),
    split=lambda values: Split(read_size(values), cache=tuple_space(values)),
    parameters=CACHE_PARAMETERS,
)

SSCJ = Recipe(
    name="sscj",
    summary="CACHEJOIN that overwrites the least frequent cached tuple",
    paper="Naeem, Weber, Dobbie, Lutteroth: SSCJ, a semi-stream cache join using a front-stage cache module",
    caching=TupleCaching(above_threshold, lambda _: LeastFrequentOverwrite()),
    split=CACHEJOIN.split,
    parameters=CACHE_PARAMETERS,
)
