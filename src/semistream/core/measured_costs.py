"""What work costs, by the seconds it has taken of late."""

from __future__ import annotations

_DECAY = 0.995
"""An observation counts half as much after about 140 more."""
_DOUBT = 0.005
"""How much the assumed ratio counts against all observations."""
_MAX_OFF = 8.0
_NOTHING = 1e-12
"""What explains less of the seconds than this says nothing about costs."""


class MeasuredCosts:
    """Fits seconds = a · x + b · y to pairs of counts and the seconds that they took, the last ones counting most.

    Errors count relative to the seconds that were taken. So short observations count as much as long ones, and one that
    took far too long, because the machine did something else, hardly counts. It starts with an `assumed` pair of costs;
    their ratio also decides what the observations cannot tell apart. Where all of them are alike the fit is mostly
    noise, so the ratio never leaves an eighth to eight times the assumed one. Costs a microsecond; belongs to one
    thread.
    """

    def __init__(self, assumed: tuple[float, float]) -> None:
        self._assumed = assumed
        self._factors = (1.0, 1.0)
        """Both costs in units of the assumed ones."""
        self._xx = self._xy = self._yy = self._x = self._y = 0.0

    @property
    def costs(self) -> tuple[float, float]:
        """The seconds of one of each kind."""
        return self._factors[0] * self._assumed[0], self._factors[1] * self._assumed[1]

    def observe(self, x: float, y: float, seconds: float) -> None:
        """Learn that so many of both kinds together took so long."""
        if seconds <= 0.0:
            return
        x, y = x * self._assumed[0] / seconds, y * self._assumed[1] / seconds
        if x + y < _NOTHING:
            return
        self._xx = _DECAY * self._xx + x * x
        self._xy = _DECAY * self._xy + x * y
        self._yy = _DECAY * self._yy + y * y
        self._x = _DECAY * self._x + x
        self._y = _DECAY * self._y + y
        self._solve()

    def _solve(self) -> None:
        """Solve the normal equations, both costs being drawn a little to where they would be if only the scale was off.

        If their ratio is too far off, the nearest that is allowed is kept and only the scale is fitted.
        """
        both = self._xx + 2 * self._xy + self._yy
        scale, doubt = (self._x + self._y) / both, _DOUBT * both
        xx, xy, yy = self._xx + doubt, self._xy, self._yy + doubt
        x, y = self._x + doubt * scale, self._y + doubt * scale
        first, second = x * yy - y * xy, y * xx - x * xy  # both times the determinant, which is positive
        if first * _MAX_OFF >= second and second * _MAX_OFF >= first:
            determinant = xx * yy - xy * xy
            self._factors = first / determinant, second / determinant
            return
        ratio = _MAX_OFF if first > second else 1 / _MAX_OFF
        second = (ratio * self._x + self._y) / (ratio * ratio * self._xx + 2 * ratio * self._xy + self._yy)
        self._factors = ratio * second, second
