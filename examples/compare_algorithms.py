"""Compares three algorithms on the model clock, which gives the same numbers on every machine.

Run it with `python examples/compare_algorithms.py`. The command `semistream lab bench` does the same with more options.
"""

from __future__ import annotations

from semistream.algorithms.registry import algorithm_named
from semistream.core.costs import PAPERS
from semistream.generator import Workload, ZipfKeys
from semistream.store.memory import MemoryStore
from semistream_lab.measurement import measure

MASTER_ROWS = 200_000


def main() -> None:
    """Measure each algorithm on the same table and the same stream."""
    # On the model clock the rows themselves do not matter, only how many bytes a read brings.
    store = MemoryStore.of_codes(MASTER_ROWS, row_bytes=120)
    print("algorithm      tuples/s  cache hits  read requests")
    for name in ("meshjoin", "hybridjoin", "cachejoin"):
        # Every run draws the same keys: a few of them very often, most of them rarely (Zipf's law).
        stream = Workload(ZipfKeys(MASTER_ROWS, 1.0, seed=7))
        result = measure(
            algorithm_named(name),
            store,
            stream,
            memory="5MB",
            tuples=600_000,
            profile=PAPERS,  # the costs that are charged: the papers' disk and processor
            accounting="papers",  # count memory as the papers do
        )
        hits = result.stats.cache_hits / result.stats.tuples_out
        print(f"{name:<12} {result.service_rate:>10,.0f}  {hits:>10.1%}  {result.stats.read_requests:>13,}")


if __name__ == "__main__":
    main()
