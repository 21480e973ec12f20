"""Runs the campaign and prints one row for each promise; exits with 1 if one is broken.

python tests/reliability/soak.py                      # everything; goes on where it was stopped
python tests/reliability/soak.py --only corruption --seed 7
python tests/reliability/soak.py --only corruption --case NAME    # one case again
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from campaign import run_case, run_promise, table_of
from promises import PROMISES


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PROMISES), help="Promises, separated by commas.")
    parser.add_argument("--case", help="Run one case of one promise again.")
    parser.add_argument("--seed", type=int, default=1, help="Random seed of all cases.")
    parser.add_argument("--results", type=Path, default=Path("build/soak"), help="Where finished cases are remembered.")
    options = parser.parse_args()
    chosen = [PROMISES[name] for name in options.only.split(",")]
    if options.case:
        cases = [case for promise in chosen for case in promise.cases(options.seed) if case.name == options.case]
        print([run_case(case) for case in cases])
        return 0
    outcomes = [run_promise(promise, options.seed, options.results, _say) for promise in chosen]
    print(table_of(outcomes, options.seed))
    return int(any(outcome.broken for outcome in outcomes))


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
