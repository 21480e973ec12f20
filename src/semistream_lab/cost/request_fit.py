"""Turns measured requests into the constants of a cost profile: a latency and a bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.errors import InvalidSettingError
from semistream_lab.cost.request_times import RequestTime

WORTHWHILE_GAIN = 1.1
"""More requests in flight count only while they answer at least so many times as many requests a second."""


@dataclass(frozen=True)
class RequestCosts:
    """What a request costs: a latency and the time of its bytes."""

    seek_seconds: float
    request_seconds: float
    bytes_per_second: float
    max_in_flight: int


def fit_requests(measured: Sequence[RequestTime]) -> RequestCosts:
    """Return the latencies and the bandwidth that come nearest to the requests that were alone under way.

    Near means a small relative error, so that short requests count as much as long ones. None of the constants is
    negative, and a request that continues the one before is never dearer than one at a random place. Where size made no
    difference, the bandwidth is the highest that was seen.
    """
    alone = [request for request in measured if request.in_flight == 1]
    if not any(not request.sequential for request in alone):
        raise InvalidSettingError("Costs need measured requests at random places, one at a time: measure some.")
    seconds = np.array([request.seconds for request in alone])
    terms = np.array([[not request.sequential, request.sequential, request.size_bytes] for request in alone])
    # Each equation is divided by its time: what is left is the relative error.
    seek, request, per_byte = _not_negative(terms / seconds[:, np.newaxis])
    if not any(request.sequential for request in alone):
        request = seek
    highest = max(request.bytes_per_second for request in measured)
    return RequestCosts(seek, min(request, seek), 1 / per_byte if per_byte > 0 else highest, _max_in_flight(measured))


def _not_negative(terms: Float64Array) -> tuple[float, float, float]:
    """Return the factors, none of them negative, by which the terms of each equation come nearest to 1."""
    factors = np.zeros(terms.shape[1])
    kept = np.flatnonzero(terms.any(axis=0))
    while len(kept):
        # Scaled, because a latency and the time of a byte are many orders of magnitude apart.
        scales = terms[:, kept].max(axis=0)
        scaled = np.linalg.lstsq(terms[:, kept] / scales, np.ones(len(terms)), rcond=None)[0]
        if scaled.min() >= 0:
            factors[kept] = scaled / scales
            break
        kept = np.delete(kept, int(scaled.argmin()))
    seek, request, per_byte = factors.tolist()
    return seek, request, per_byte


def _max_in_flight(measured: Sequence[RequestTime]) -> int:
    """Return how many requests in flight still bring more, by the smallest requests, whose time is all latency."""
    random = [request for request in measured if not request.sequential]
    smallest = min(request.size_bytes for request in random)
    steps = sorted((request for request in random if request.size_bytes == smallest), key=lambda step: step.in_flight)
    best = steps[0]
    for step in steps[1:]:
        if step.requests_per_second <= WORTHWHILE_GAIN * best.requests_per_second:
            break
        best = step
    return best.in_flight
