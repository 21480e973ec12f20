"""How far a job of Flink has come, asked of Flink itself."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from semistream_lab.peers.contract import PeerFailedError, WrongRowsError
from semistream_lab.peers.flink.running_job import LOOPBACK

_PAUSE_SECONDS = 0.1
_SECONDS_WITHOUT_ROWS = 120.0
_SECONDS_TO_ANSWER = 30.0
_ROWS = "Writer.numRecordsIn"
_HITS, _MISSES = ".cache.hitCount", ".cache.missCount"


@dataclass(frozen=True)
class Sample:
    """What a job had done at a moment; counters of a cache that all tasks share are those of one of them."""

    seconds: float
    rows: int
    hits: int = 0
    misses: int = 0


class JobProgress:
    """Asks for the counters of a job, all of which one chain of its operators has."""

    def __init__(self, port: int, job: str, *, cache: bool) -> None:
        """Say where the job is, and whether it has a cache whose counters are wanted too."""
        self._port, self._job = port, quote(job, safe="")
        self._endings = (_ROWS, _HITS, _MISSES) if cache else (_ROWS,)
        self._metrics_path: str | None = None

    def sample(self) -> Sample:
        """Return the counters as Flink last gathered them; all are 0 until the job has started its tasks."""
        if (path := self._path()) is None:
            return Sample(time.perf_counter(), 0)
        metrics = {one["id"]: one for one in self._asked(path)}
        at = time.perf_counter()

        def counter(ending: str, kind: str) -> int:
            return int(sum(one[kind] for name, one in metrics.items() if name.endswith(ending)))

        return Sample(at, counter(_ROWS, "sum"), counter(_HITS, "max"), counter(_MISSES, "max"))

    def is_running(self) -> bool:
        """Return whether the job has not ended."""
        return str(self._asked(f"/jobs/{self._job}")["state"]) in {"INITIALIZING", "CREATED", "RUNNING"}

    def _path(self) -> str | None:
        """Return where the wanted counters are, or None as long as Flink does not know them."""
        if self._metrics_path is None:
            for vertex in self._asked(f"/jobs/{self._job}")["vertices"]:
                path = f"/jobs/{self._job}/vertices/{quote(vertex['id'], safe='')}/subtasks/metrics"
                known = [one["id"] for one in self._asked(path)]
                wanted = [name for name in known if name.endswith(self._endings)]
                # Operators register their counters one after the other.
                if all(any(name.endswith(ending) for name in wanted) for ending in self._endings):
                    self._metrics_path = f"{path}?{urlencode({'get': ','.join(wanted)})}"
        return self._metrics_path

    def _asked(self, path: str) -> Any:
        # Not by urllib, which would send even this through a proxy that the environment names.
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=_SECONDS_TO_ANSWER)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != http.client.OK:
                raise PeerFailedError(f"Flink does not report its progress (status {answer.status}).")
            return json.loads(body)
        except (OSError, http.client.HTTPException) as error:
            raise PeerFailedError(f"Flink does not report its progress ({type(error).__name__}).") from error
        finally:
            connection.close()


def samples_until(
    progress: JobProgress,
    rows: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
    pause: Callable[[float], None] = time.sleep,
) -> list[Sample]:
    """Watch a job until it has written exactly so many rows since its start, and return all that was seen."""
    samples: list[Sample] = []
    seen, moved = -1, clock()
    while True:
        sample = progress.sample()
        samples.append(sample)
        if sample.rows > rows:
            raise WrongRowsError(f"It gave {sample.rows:,} rows instead of {rows:,}.")
        if sample.rows == rows:
            return samples
        if sample.rows != seen:
            seen, moved = sample.rows, clock()
        elif not progress.is_running() or clock() - moved > _SECONDS_WITHOUT_ROWS:
            raise PeerFailedError("Its job in Flink stopped: run it with --data DIR and read the logs there.")
        pause(_PAUSE_SECONDS)


def at_rows(samples: Sequence[Sample], rows: int) -> Sample:
    """Return where a job was when it had written so many rows, between the samples around it.

    If it stood still there, that is the moment at which it went on.
    """
    after = next((place for place, sample in enumerate(samples) if sample.rows > rows), len(samples) - 1)
    one, other = samples[max(0, after - 1)], samples[after]
    share = (rows - one.rows) / (other.rows - one.rows) if other.rows > one.rows else 1.0

    def between(first: float, second: float) -> float:
        return first + (second - first) * share

    hits, misses = between(one.hits, other.hits), between(one.misses, other.misses)
    return Sample(between(one.seconds, other.seconds), rows, round(hits), round(misses))
