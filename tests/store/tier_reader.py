"""Reads stretches through a tier in a process of its own: `tier_reader.py FOLDER BUDGET SEED SECONDS`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))

import numpy as np
from far_folder import tiered_folder, trusted_stretches


def main() -> None:
    """Read and compare until the time is over; say how often a stretch came from the tier."""
    folder, budget, seed, seconds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    place, random = tiered_folder(folder, budget), np.random.default_rng(seed)
    content = np.fromfile(folder / "far" / "data", dtype=np.uint8)
    deadline = time.monotonic() + seconds
    print("reading", flush=True)
    while time.monotonic() < deadline:
        lengths = random.integers(1, 9000, 20)
        offsets = random.integers(0, len(content) - lengths)
        expected = np.concatenate([content[o : o + n] for o, n in zip(offsets, lengths, strict=True)])
        if random.random() < 0.3:
            place.expect("data", np.stack([offsets, lengths, lengths], axis=1))
        found = trusted_stretches(place, "data", offsets, lengths, expected)
        if not (found == expected).all():
            sys.exit("wrong bytes")
    print(place.traffic.tier_hits, flush=True)


if __name__ == "__main__":
    main()
