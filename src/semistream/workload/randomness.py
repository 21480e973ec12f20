"""Seeded random numbers, apart for each purpose."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from semistream.workload.settings import whole_number


def random_for(purpose: str, seed: int) -> np.random.Generator:
    """Return the random numbers that `seed` gives for `purpose`.

    Two purposes with one seed do not share numbers, so that keys and arrivals with the same seed stay independent.
    """
    return np.random.Generator(np.random.PCG64([whole_number("seed", seed, least=0), crc32(purpose.encode())]))
