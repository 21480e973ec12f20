"""How fast the past is forgotten: soon while the stream changes, late while it does not."""

from __future__ import annotations

from math import sqrt

_CHANGED, _CHANGED_MUCH = 0.9, 0.75
_WORSE = 0.97
_STEADY = 0.03
_OUTDATED = 0.1
"""From so many of the entries on that should have been used and were not, the stream is taken to drift."""
_SIGNIFICANT = 4.0
"""How many standard deviations of a window's share are taken for noise."""
_MIN_BETWEEN, _BETWEEN_WHEN_NEW = 4, 16
_ALL = 16
_SETTLED_WINDOWS = 6


class SteadyAgeing:
    """Says after each window of tuples how often all counts of use are to be halved now.

    Frequencies near the border of the cache are small, so a short memory sees little but noise; a long one keeps what
    was hot before a change. So the windows between two halvings double while the share of tuples that the cache answers
    is steady, up to `max_windows` of them, and halve when it falls a little. When it falls by a tenth, the stream has
    changed: counts are then brought down to what they would be had they been halved all the time, and to nothing when
    it falls by a quarter. A stream that drifts at a steady pace shows a steady share, but a lower one than it could: so
    the windows are also halved while entries that were used often are not used any more, or all are used ever less.
    """

    def __init__(self, max_windows: int) -> None:
        self._max_between = max(1, max_windows)
        self._min_between = self._between = min(_MIN_BETWEEN, self._max_between)
        self._since = 0
        self._usual = 0.0
        self._last = 0.0
        self._steady_windows = 0
        self._was_outdated = False
        """Since the last halving."""
        self.remembered = 0.0
        """How many windows of uses the counts stand for."""

    def after_window(self, answered: int, tuples: int, outdated: float = 0.0, perhaps_outdated: float = 0.0) -> int:
        """Learn how many tuples of a window the cache has answered; return how often counts are to be halved.

        `outdated` is the share of the often used entries that were not used any more, or of the uses that entries have
        lost; `perhaps_outdated` is the latter if it is doubtful, which is enough for not lengthening the memory.
        """
        halvings = self._halvings(answered, tuples, outdated, perhaps_outdated)
        self.remembered = (self.remembered + 1) / (1 << halvings)
        return halvings

    def _halvings(self, answered: int, tuples: int, outdated: float, perhaps_outdated: float) -> int:
        share = answered / max(1, tuples)
        self._since += 1
        noise = _SIGNIFICANT * sqrt(self._usual * (1 - self._usual) / max(1, tuples))
        if share < _CHANGED * self._usual - noise:
            much = share < _CHANGED_MUCH * self._usual
            halvings = _ALL if much else (self._between // self._min_between).bit_length()
            self._between = min(self._max_between, _BETWEEN_WHEN_NEW) if much else self._min_between
            self._since, self._usual, self._last = 0, share, share
            self._steady_windows = 0
            return halvings
        steady = abs(share - self._last) <= _STEADY * share + noise
        self._steady_windows = self._steady_windows + 1 if steady else 0
        is_outdated = outdated > _OUTDATED
        if share < _WORSE * self._usual - noise or is_outdated:
            self._between = max(self._min_between, self._between // 2)
        self._was_outdated |= is_outdated
        self._usual, self._last = max(share, 0.99 * self._usual), share
        if self._since < self._between:
            return 0
        self._since = 0
        if steady and not self._was_outdated and perhaps_outdated <= _OUTDATED:
            self._between = min(self._max_between, 2 * self._between)
        self._was_outdated = False
        return 1

    @property
    def is_settled(self) -> bool:
        """Whether the cache answers about the same share for some windows now."""
        return self._steady_windows >= _SETTLED_WINDOWS

    def resized(self, window_ratio: float) -> None:
        """Learn that the cache has another size, so that its share will be another, and a window is so much shorter."""
        self._usual = 0.0
        self.remembered *= window_ratio
