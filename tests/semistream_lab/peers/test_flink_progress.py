"""How far a Flink job has come: what its server tells, and the times that follow from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream_lab.peers.contract import PeerFailedError, WrongRowsError
from semistream_lab.peers.flink.job_progress import JobProgress, Sample, at_rows, samples_until

METRICS = [
    {"id": "sink[8]__Writer.numRecordsIn", "sum": 300.0, "max": 200.0},
    {"id": "sink[8]__Writer.numRecordsInPerSecond", "sum": 1.0, "max": 1.0},
    {"id": "Source__stream[5].numRecordsIn", "sum": 900.0, "max": 500.0},
    {"id": "LookupJoin[6].cache.hitCount", "sum": 400.0, "max": 200.0},
    {"id": "LookupJoin[6].cache.missCount", "sum": 200.0, "max": 100.0},
]


class _Server(HTTPServer):
    """Answers as Flink does; knows no counters when it is asked first, then those of the sink, then all."""

    asked = 0
    state = "RUNNING"


class _Answers(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        wanted = parse_qs(address.query).get("get")
        answer: Any
        if address.path == "/jobs/7":
            answer = {"state": self.server.state, "vertices": [{"id": "abc"}]}
        elif address.path != "/jobs/7/vertices/abc/subtasks/metrics":
            self.send_error(404)
            return
        elif wanted is None:
            known = (0, 3, len(METRICS))[min(self.server.asked, 2)]
            self.server.asked += 1
            answer = [{"id": one["id"]} for one in METRICS[:known]]
        else:
            answer = [one for one in METRICS if one["id"] in wanted[0].split(",")]
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[_Server]:
    """Return a server on loopback."""
    with _Server(("127.0.0.1", 0), _Answers) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_rows_are_those_of_all_tasks_and_a_shared_cache_counts_once(server: _Server) -> None:
    progress = JobProgress(server.server_port, "7", cache=True)
    assert [progress.sample().rows for _ in range(2)] == [0, 0]  # Flink does not know all counters yet
    sample = progress.sample()
    assert (sample.rows, sample.hits, sample.misses) == (300, 200, 100)


def test_a_job_without_a_cache_is_not_asked_for_one(server: _Server) -> None:
    progress = JobProgress(server.server_port, "7", cache=False)
    samples = [progress.sample() for _ in range(3)]
    assert [(sample.rows, sample.hits) for sample in samples] == [(0, 0), (300, 0), (300, 0)]


def test_a_proxy_of_the_environment_is_not_asked(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert JobProgress(server.server_port, "7", cache=True).is_running()
    server.state = "FAILED"
    assert not JobProgress(server.server_port, "7", cache=True).is_running()


def test_a_server_that_does_not_know_the_job_or_is_gone_is_told(server: _Server) -> None:
    with pytest.raises(PeerFailedError, match="status 404"):
        JobProgress(server.server_port, "8", cache=True).sample()
    with pytest.raises(PeerFailedError, match="does not report its progress"):
        JobProgress(1, "7", cache=True).sample()


class _Told(JobProgress):
    """Tells the rows that it was made with, one after the other."""

    def __init__(self, rows: list[int], *, running: bool = True) -> None:
        self._told, self._running = rows, running

    def sample(self) -> Sample:
        return Sample(0.0, self._told.pop(0) if len(self._told) > 1 else self._told[0])

    def is_running(self) -> bool:
        return self._running


def watched(progress: JobProgress, rows: int) -> list[int]:
    """Watch a job on a clock that moves by a second with each look."""
    seconds = iter(range(10_000))
    samples = samples_until(progress, rows, clock=lambda: float(next(seconds)), pause=lambda _: None)
    return [sample.rows for sample in samples]


def test_a_job_is_watched_until_all_its_rows_are_written() -> None:
    assert watched(_Told([0, 0, 5, 9, 10]), 10) == [0, 0, 5, 9, 10]


def test_more_rows_than_were_given_are_wrong() -> None:
    with pytest.raises(WrongRowsError, match="11 rows instead of 10"):
        watched(_Told([9, 11]), 10)


@pytest.mark.parametrize("running", [True, False])
def test_a_job_that_stands_still_or_has_ended_is_given_up(running: bool) -> None:
    with pytest.raises(PeerFailedError, match="stopped"):
        watched(_Told([0, 5, 5], running=running), 10)


@given(
    steps=st.lists(st.tuples(st.floats(0.01, 5), st.integers(0, 1000)), min_size=1, max_size=20),
    share=st.floats(0, 1),
)
def test_a_moment_between_samples_is_between_their_times(steps: list[tuple[float, int]], share: float) -> None:
    samples = [Sample(10.0, 100)]
    for seconds, rows in steps:
        last = samples[-1]
        samples.append(Sample(last.seconds + seconds, last.rows + rows, last.hits + rows))
    wanted = 100 + int(share * (samples[-1].rows - 100))
    moment = at_rows(samples, wanted)
    assert moment.rows == wanted
    before = [one.seconds for one in samples if one.rows < wanted]
    after = [one.seconds for one in samples if one.rows > wanted]
    assert max(before, default=10.0) <= moment.seconds + 1e-9
    assert moment.seconds <= min(after, default=samples[-1].seconds) + 1e-9


def test_a_steady_job_gives_its_rate_and_a_pause_before_it_does_not_count() -> None:
    samples = [Sample(0.0, 50), Sample(7.0, 50), *(Sample(7.0 + second, 50 + 100 * second) for second in range(1, 9))]
    begin, end = at_rows(samples, 50), at_rows(samples, 350)
    assert end.seconds - begin.seconds == pytest.approx(3.0)
