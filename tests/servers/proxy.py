"""A proxy on loopback that makes a server slow, counts its requests, and loses answers where it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

Fault = Callable[[str, str], bool]


@dataclass
class Proxy:
    """Hands requests on to a port of loopback, each with a latency, all together with a bandwidth.

    `lose_answer` is asked for each request by method and path: where it says so, the server does what it was asked, but
    nobody hears of it. With `keeps` objects of whose path it says so are taken from the server once, and stretches of
    them come from the proxy's own memory: moto reads a whole object for each stretch.
    """

    target_port: int
    latency_seconds: float = 0.0
    bytes_per_second: float = 0.0
    lose_answer: Fault | None = None
    keeps: Callable[[str], bool] | None = None
    requests: list[tuple[str, str]] = field(default_factory=list)
    bytes_sent: int = 0

    def __enter__(self) -> Self:
        proxy = self
        self._line = threading.Lock()
        self._line_free_at = 0.0
        self._keeping = threading.Lock()
        self._kept: dict[str, bytes] = {}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                proxy._hand_on(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """Where the proxy listens."""
        return int(self._server.server_address[1])

    def _hand_on(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        self.requests.append((request.command, request.path))
        time.sleep(self.latency_seconds)
        stretch = request.headers.get("Range", "")
        if self.keeps is not None and request.command == "GET" and stretch and self.keeps(request.path):
            kept = self._kept_object(request)
            first, last = (int(number) for number in stretch.removeprefix("bytes=").split("-"))
            content = kept[first : last + 1]
            headers = {
                "Content-Range": f"bytes {first}-{first + len(content) - 1}/{len(kept)}",
                "ETag": '"kept"',
                "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
            }
            status = 206
        else:
            status, headers, content = self._asked(request, dict(request.headers.items()), body)
        if self.lose_answer is not None and self.lose_answer(request.command, request.path):
            request.close_connection = True
            return
        self._wait_for_bandwidth(len(content))
        request.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                request.send_header(name, value)
        size = headers.get("Content-Length", "0") if request.command == "HEAD" else str(len(content))
        request.send_header("Content-Length", size)
        request.end_headers()
        request.wfile.write(content)
        self.bytes_sent += len(content)

    def _asked(
        self, request: BaseHTTPRequestHandler, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection("127.0.0.1", self.target_port, timeout=60)
        try:
            headers = {name: value for name, value in headers.items() if name.lower() != "connection"}
            connection.request(request.command, request.path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def _kept_object(self, request: BaseHTTPRequestHandler) -> bytes:
        with self._keeping:
            if request.path not in self._kept:
                headers = {name: value for name, value in request.headers.items() if name.lower() != "range"}
                self._kept[request.path] = self._asked(request, headers, b"")[2]
            return self._kept[request.path]

    def _wait_for_bandwidth(self, size_bytes: int) -> None:
        if self.bytes_per_second and size_bytes:
            with self._line:
                now = time.monotonic()
                self._line_free_at = max(now, self._line_free_at) + size_bytes / self.bytes_per_second
                wait_seconds = self._line_free_at - now
            time.sleep(wait_seconds)
