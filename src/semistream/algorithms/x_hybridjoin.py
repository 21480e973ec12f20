"""X-HYBRIDJOIN, untuned and tuned.

Paper: Naeem, Dobbie, Weber: Efficient processing of streaming updates with archived master data in near-real-time data
warehousing. HYBRIDJOIN with a second, non-swappable part of the disk buffer that holds the most used pages for good.
The master table is stored in order of use, so these are its first pages. Each iteration probes the pinned part into the
waiting tuples, then one swapped partition.

Recipe: oldest first, pinned pages, refill, one phase after the other. Untuned, both parts are as large as HYBRIDJOIN's
disk buffer; tuned, each has a size of its own.

Deviations: none beyond HYBRIDJOIN's. The default sizes of the tuned one are what the lab's tuner chooses for
two million rows, 50 MB and an exponent of 1 on the papers' machine; let it choose for other situations.
"""

from semistream.engine.recipe import PagePinning, Recipe
from semistream.engine.sizing import Split

_PAPER = "Naeem, Dobbie, Weber: Efficient processing of streaming updates with archived master data (X-HYBRIDJOIN)"

X_HYBRIDJOIN = Recipe(
    name="x-hybridjoin",
    summary="HYBRIDJOIN with the most used pages pinned in as much memory as one read",
    paper=_PAPER,
    caching=PagePinning(),
    split=lambda parameters: Split(read_bytes=int(parameters["read_bytes"]), cache_reads=1, blocks=True),
    parameters={"read_bytes": 0},
    sorted_by_use=True,
)

X_HYBRIDJOIN_TUNED = Recipe(
    name="x-hybridjoin-tuned",
    summary="X-HYBRIDJOIN with each part of its disk buffer sized for itself",
    paper=_PAPER,
    caching=PagePinning(),
    split=lambda parameters: Split(
        read_bytes=int(parameters["read_bytes"]), cache_share=parameters["pinned_share"], blocks=True
    ),
    parameters={"read_bytes": 2_439_040, "pinned_share": 0.103},
    sorted_by_use=True,
)
