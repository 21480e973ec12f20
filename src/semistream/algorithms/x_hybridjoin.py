"""X-HYBRIDJOIN, untuned and tuned.

Paper: Naeem, Dobbie, Weber: Efficient processing of streaming updates with archived master data in near-real-time data
warehousing. HYBRIDJOIN with a second, non-swappable part of the disk buffer that holds the most used pages for good.
The master table is stored in order of use, so these are its first pages. Each iteration probes the pinned part into the
waiting tuples, then one swapped page group.

Recipe: oldest first, pinned pages, refill, one phase after the other. Untuned, both parts are as large as HYBRIDJOIN's
disk buffer; tuned, each has a size of its own.

Deviations: none beyond HYBRIDJOIN's. The default sizes of the tuned one are what the lab's tuner chooses for
two million rows, 50 MB and an exponent of 1 on the papers' machine; let it choose for other situations.
"""

from semistream.algorithms.shared_parameters import READ_BYTES, read_size
from semistream.engine.parameters import Number, Tuning, named
from semistream.engine.recipe import PagePinning, Recipe
from semistream.engine.sizing.split import BlockSpace, MemoryShare, Reads, Split

_PAPER = "Naeem, Dobbie, Weber: Efficient processing of streaming updates with archived master data (X-HYBRIDJOIN)"
PINNED_SHARE = Number(
    "pinned_share",
    0.103,
    low=0,
    high=0.9,
    about="share of the memory that holds the most used pages for good",
    tuning=Tuning(0.0002, 0.3),
)

X_HYBRIDJOIN = Recipe(
    name="x-hybridjoin",
    summary="HYBRIDJOIN with the most used pages pinned in as much memory as one read",
    paper=_PAPER,
    caching=PagePinning(),
    split=lambda values: Split(read_size(values), cache=BlockSpace(Reads(1))),
    parameters=named(READ_BYTES),
    sorted_by_use=True,
)

X_HYBRIDJOIN_TUNED = Recipe(
    name="x-hybridjoin-tuned",
    summary="X-HYBRIDJOIN with each part of its disk buffer sized for itself",
    paper=_PAPER,
    caching=PagePinning(),
    split=lambda values: Split(read_size(values), cache=BlockSpace(MemoryShare(values[PINNED_SHARE]))),
    parameters=named(READ_BYTES.with_default(2_439_040), PINNED_SHARE),
    sorted_by_use=True,
)
