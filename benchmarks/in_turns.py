"""Compares the throughput of this checkout with that of another, measurement by measurement in turns.

Each checkout has one process with its own sources and its own `benchmarks/throughput.py`; the two measure the same
situation one right after the other, so that both see the same machine. Processes are started anew now and then, because
where their memory lies makes a difference. Prints the ratio of each situation, this checkout to the other one, as the
geometric mean over all pairs, and last that of all situations.

    git worktree add ../before COMMIT
    python benchmarks/in_turns.py ../before --pairs 10
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

PAYLOADS = ("none", "fixed", "string")
PAIRS_OF_A_PROCESS = 2
RATES = ("per_wall_second", "per_cpu_second")
ALGORITHMS = "hybridjoin,cachejoin,p-cachejoin,op-cachejoin"


class Checkout:
    """A process that measures one checkout."""

    def __init__(self, folder: Path, *settings: str) -> None:
        command = [sys.executable, __file__, str(folder), "--serve", *settings]
        environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def measure(self, payload: str, algorithm: str) -> dict[str, float]:
        """Return the rates of one run."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{payload} {algorithm}\n")
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("A measuring process has ended; its error stands above.")
        rates: dict[str, float] = json.loads(line)
        return rates

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve(folder: Path, master_rows: int, tuples: int, memory: str) -> None:
    """Measure what the lines of the input name, and answer each by a line."""
    throughput = _throughput_of(folder)
    keys = throughput.ZipfKeys(master_rows, 1.0, seed=1, ranks="shuffled").draw(tuples)
    stores: dict[str, Any] = {}
    for line in sys.stdin:
        payload, algorithm = line.split()
        if payload not in stores:
            stores = {payload: throughput.master(master_rows, strings=payload == "string")}
        run = throughput.join_keys if payload == "none" else throughput.join_rows
        print(json.dumps(run(stores[payload], algorithm, memory, keys)), flush=True)


def _throughput_of(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("throughput", folder / "benchmarks" / "throughput.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(
    folders: tuple[Path, Path], settings: Sequence[str], algorithms: Sequence[str], pairs: int
) -> Iterator[tuple[str, list[float]]]:
    """Yield for each pair its situation and the ratios of wall and processor rates; a first pair does not count."""
    here, there = (Checkout(folder, *settings) for folder in folders)
    for payload in PAYLOADS:
        for algorithm in algorithms:
            for pair in range(pairs + 1):
                both = (here, there) if pair % 2 else (there, here)
                rates = {checkout: checkout.measure(payload, algorithm) for checkout in both}
                if pair:
                    ratios = [rates[here][name] / rates[there][name] for name in RATES]
                    yield f"{algorithm}, {payload}", ratios
    here.end()
    there.end()


def main() -> None:
    """Compare, or measure for another process that compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--algorithm", default=ALGORITHMS)
    parser.add_argument("--memory", default="50MB")
    parser.add_argument("--master-rows", type=int, default=2_000_000)
    parser.add_argument("--tuples", type=int, default=3_000_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.other, options.master_rows, options.tuples, options.memory)
        return
    settings = ("--memory", options.memory, "--master-rows", str(options.master_rows), "--tuples", str(options.tuples))
    folders = (Path(__file__).resolve().parents[1], options.other.resolve())
    algorithms = options.algorithm.split(",")
    ratios_of: dict[str, list[list[float]]] = {}
    for start in range(0, options.pairs, PAIRS_OF_A_PROCESS):
        pairs = min(PAIRS_OF_A_PROCESS, options.pairs - start)
        for situation, ratios in compare(folders, settings, algorithms, pairs):
            ratios_of.setdefault(situation, []).append(ratios)
    means = []
    for situation, each in ratios_of.items():
        wall, processor = (geometric_mean(ratios) for ratios in zip(*each, strict=True))
        means.append((wall, processor))
        print(f"{situation}: wall {wall:.3f}, processor {processor:.3f}")
    wall, processor = (geometric_mean(ratios) for ratios in zip(*means, strict=True))
    print(f"all: wall {wall:.3f}, processor {processor:.3f}")


if __name__ == "__main__":
    main()
