"""Measures by the kernel's own high-water mark whether joins keep to their memory budgets.

For each budget a master table of ten times its size is built on disk, and a process of its own joins a stream with it;
what the process grows by must stay within 1.15 times the budget. The same measurement, over a sample of all kinds of
tables and streams, is the promise `memory` of the reliability campaign.

    python benchmarks/memory_bound.py --memory 16MB,64MB --algorithm hybridjoin,cachejoin --table "hot fat rows"
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "reliability"))

from memory_child import Run, measure
from memory_data import STREAMS, TABLES, build

from semistream.core.budget import parse_bytes


def main() -> None:
    """Print one line of JSON for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", default="16MB,64MB,256MB")
    parser.add_argument("--algorithm", default="hybridjoin,cachejoin")
    parser.add_argument("--table", default="plain", choices=TABLES)
    parser.add_argument("--stream", default="20 bytes", choices=STREAMS)
    parser.add_argument("--exponent", type=float, default=1.0)
    parser.add_argument("--tuples", type=int, default=3_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for memory in map(parse_bytes, options.memory.split(",")):
            path = str(build(options.table, memory, Path(folder)))
            for algorithm in options.algorithm.split(","):
                run = Run(path, options.table, options.stream, options.exponent, algorithm, memory, options.tuples)
                print(json.dumps({"algorithm": algorithm, "memory_bytes": memory, **measure(run)}), flush=True)


if __name__ == "__main__":
    main()
