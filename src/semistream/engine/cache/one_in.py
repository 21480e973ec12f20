"""Draws one in so many."""

from __future__ import annotations

from random import Random


class OneIn:
    """Draws one in so many, in the mean, at random."""

    def __init__(self, count: int, random: Random) -> None:
        self._count = count
        self._random = random
        self._passed = 0
        """How many more are not drawn."""

    def draw(self) -> bool:
        """Say whether the next one is drawn."""
        if self._passed:
            self._passed -= 1
            return False
        self._passed = self._random.randrange(2 * self._count - 1)
        return True
