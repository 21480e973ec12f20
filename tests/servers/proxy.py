"""A proxy on loopback that makes a server slow, counts its requests, and loses answers where it is told to."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection
from types import TracebackType
from typing import Self, cast

Fault = Callable[[str, str], bool]
_NOT_HANDED_ON = ("connection", "transfer-encoding", "content-length")
_THREADS = 32
_STRETCH = re.compile(rb"\r\nrange: *bytes=(\d+)-(\d+)\r\n", re.IGNORECASE)
_HEAD_OF_STRETCH = (
    b"HTTP/1.1 206 -\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n"
    b'ETag: "kept"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n'
)


@dataclass(frozen=True)
class Request:
    """What a client has asked for."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def stretch(self) -> tuple[int, int] | None:
        """First and last byte, where only a stretch of an object is asked for."""
        asked = next((value for name, value in self.headers.items() if name.lower() == "range"), None)
        if self.method != "GET" or asked is None:
            return None
        first, last = asked.removeprefix("bytes=").split("-")
        return int(first), int(last)


@dataclass(frozen=True)
class Answer:
    """What the server has said to it."""

    status: int
    headers: dict[str, str]
    content: bytes | memoryview

    def head(self, method: str) -> bytes:
        """Return the first lines, up to the content."""
        lines = [f"{name}: {value}" for name, value in self.headers.items() if name.lower() not in _NOT_HANDED_ON]
        size = self.headers.get("Content-Length", "0") if method == "HEAD" else str(len(self.content))
        return "\r\n".join((f"HTTP/1.1 {self.status} -", *lines, f"Content-Length: {size}", "", "")).encode("latin-1")


@dataclass
class Proxy:
    """Hands requests on to a port of loopback, each with a latency, all together with a bandwidth.

    `lose_answer` is asked for each request by method and path: where it says so, the server does what it was asked, but
    nobody hears of it. With `keeps` objects of whose path it says so are taken from the server once, and stretches of
    them come from the proxy's own memory: moto reads a whole object for each stretch. Those are answered by one thread
    that looks at nothing but path and stretch, because all processes of a measurement share the processor.
    """

    target_port: int
    latency_seconds: float = 0.0
    bytes_per_second: float = 0.0
    lose_answer: Fault | None = None
    keeps: Callable[[str], bool] | None = None
    requests: list[tuple[str, str]] = field(default_factory=list)
    bytes_sent: int = 0
    port: int = 0
    """Where the proxy listens, once it does."""

    def __enter__(self) -> Self:
        self._line_free_at = 0.0
        self._kept: dict[str, Answer] = {}
        self._keeping = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS)
        self._loop = asyncio.new_event_loop()
        listening = threading.Event()

        async def listen() -> None:
            self._server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
            self.port = int(self._server.sockets[0].getsockname()[1])
            listening.set()

        def run() -> None:
            self._loop.run_until_complete(listen())
            self._loop.run_forever()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert listening.wait(10), "the proxy does not listen"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._loop.close()

    def begin_kept(self, path: str, first: int, last: int, answered: Callable[[bytes, memoryview], None]) -> bool:
        """Answer a request for a stretch of a kept object when its time has come; False if it is not kept."""
        kept = self._kept.get(path)
        if kept is None or kept.status != 200 or self.lose_answer is not None:
            return False
        self.requests.append(("GET", path))
        content = memoryview(kept.content)[first : last + 1]
        head = _HEAD_OF_STRETCH % (first, first + len(content) - 1, len(kept.content), len(content))
        self.bytes_sent += len(content)
        now = self._loop.time() + self.latency_seconds
        self._loop.call_at(now + self._line_seconds(len(content), now), answered, head, content)
        return True

    def begin(self, request: Request, answered: Callable[[Answer], None], lost: Callable[[], None]) -> None:
        """Answer a request when its time has come, or let it be lost."""
        self.requests.append((request.method, request.path))

        def answer(found: Answer) -> None:
            if self.lose_answer is not None and self.lose_answer(request.method, request.path):
                lost()
                return
            self.bytes_sent += len(found.content)
            self._loop.call_later(self._line_seconds(len(found.content), self._loop.time()), answered, found)

        def ask() -> None:
            asked = self._loop.run_in_executor(self._threads, self._asked_or_kept, request)
            asked.add_done_callback(lambda done: lost() if done.exception() is not None else answer(done.result()))

        self._loop.call_later(self.latency_seconds, ask)

    def _asked_or_kept(self, request: Request) -> Answer:
        if self.keeps is None or request.stretch is None or not self.keeps(request.path):
            return self._asked(request, request.headers)
        with self._keeping:
            if request.path not in self._kept:
                whole = {name: value for name, value in request.headers.items() if name.lower() != "range"}
                self._kept[request.path] = self._asked(request, whole)
        return _stretch_of(self._kept[request.path], *request.stretch)

    def _asked(self, request: Request, headers: dict[str, str]) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.target_port, timeout=60)
        try:
            handed_on = {name: value for name, value in headers.items() if name.lower() != "connection"}
            connection.request(request.method, request.path, body=request.body, headers=handed_on)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def _line_seconds(self, size_bytes: int, now: float) -> float:
        """Return in how many seconds from a moment on so many bytes are through, after those that came before."""
        if not self.bytes_per_second or not size_bytes:
            return 0.0
        self._line_free_at = max(now, self._line_free_at) + size_bytes / self.bytes_per_second
        return self._line_free_at - now


class _Connection(asyncio.Protocol):
    """Takes one request after the other, as clients of HTTP/1.1 send them."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        kept = _STRETCH.search(self._received, 0, end + 2) if self._received.startswith(b"GET ") else None
        if kept is not None:
            path = self._received[4 : self._received.index(b" ", 4)].decode("latin-1")
            if self._proxy.begin_kept(path, int(kept[1]), int(kept[2]), self._send_stretch):
                self._received.clear()
                return
        first, *lines = self._received[:end].decode("latin-1").split("\r\n")
        headers = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = next((int(value) for name, value in headers.items() if name.lower() == "content-length"), 0)
        if len(self._received) < end + 4 + size:
            return
        method, path, _ = first.split(" ")
        request = Request(method, path, headers, bytes(self._received[end + 4 : end + 4 + size]))
        del self._received[: end + 4 + size]
        self._proxy.begin(request, lambda answer: self._send(method, answer), self._transport.close)

    def _send_stretch(self, head: bytes, content: memoryview) -> None:
        self._transport.write(head)
        self._transport.write(content)

    def _send(self, method: str, answer: Answer) -> None:
        self._transport.write(answer.head(method))
        if method != "HEAD":
            self._transport.write(answer.content)


def _stretch_of(kept: Answer, first: int, last: int) -> Answer:
    if kept.status != 200:
        return kept
    content = memoryview(kept.content)[first : last + 1]
    part = {"Content-Range": f"bytes {first}-{first + len(content) - 1}/{len(kept.content)}"}
    named = {name: kept.headers[name] for name in ("ETag", "Last-Modified") if name in kept.headers}
    return Answer(206, part | named, content)
