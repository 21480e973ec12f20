"""How near is near: one tolerance for each kind of claim, whichever paper makes it."""

from __future__ import annotations

NOISE = 0.01
"""Steps of a curve below 1% are taken for noise: runs of equal length differ by so much with the seed of the stream."""
TIE = 0.02
"""Settings within 2% of each other are taken for equally good."""
CLOSE = 0.05
"""What is within 5% of what was expected is close to it: the papers' figures do not show less."""
SMALL_DEVIATION = 0.01
"""Where a paper prints a deviation of 0.3% to 0.6%, a mean deviation of at most 1% is of that order."""
PROPORTIONAL = 0.1
"""A power law whose exponent is within 0.1 of 1 (or of -1) is taken for a proportion (or its inverse)."""
COUNTED = 0.02
"""Matches counted along R fall if no part has over 2% more than the one before: they are a sample of the stream."""
GROWTH = 0.05
"""What grows over a whole range ends at least 5% higher than it begins."""
PRINTED_CONSTANT = 0.1
"""A constant that a paper prints is met within 10% of it."""
