"""Serves the live page, its numbers, metrics and health by HTTP: a few fixed addresses, and nothing else."""

from __future__ import annotations

import ipaddress
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_MAX_CONNECTIONS = 32
_SECONDS_FOR_A_REQUEST = 5.0
_SECONDS_TO_STOP = 2.0
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_NOTHING_ALLOWED = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Answer:
    """What an address answers."""

    body: bytes
    content_type: str
    status: HTTPStatus = HTTPStatus.OK
    policy: str = _NOTHING_ALLOWED
    """What a browser may load for it."""


def text_answer(text: str, status: HTTPStatus = HTTPStatus.OK, kind: str = "text/plain; charset=utf-8") -> Answer:
    """Return an answer of plain text."""
    return Answer(text.encode(), kind, status)


def json_answer(value: object, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    """Return an answer in JSON; numbers that JSON does not have are refused."""
    body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return Answer(body, "application/json", status)


class LiveServer:
    """Answers GET at some addresses from threads of its own, until it is stopped.

    Bound to loopback it answers only whoever names it so in the Host header: a page of another host cannot have its
    own name lead here and read the numbers.
    """

    def __init__(self, host: str, port: int, answers: Mapping[str, Callable[[], Answer]]) -> None:
        """Bind the port; raises OSError if that is impossible."""
        self._server = _Server(host, port, answers)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="semistream-page", daemon=True
        )

    @property
    def port(self) -> int:
        """The port that it is bound to."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address of the page, for whoever is on this machine."""
        host = str(self._server.server_address[0])
        shown = f"[{host}]" if ":" in host else host
        if host in ("0.0.0.0", "::"):
            shown = socket.gethostname()
        return f"http://{shown}:{self.port}/"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more and free the port."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(_SECONDS_TO_STOP)
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _MAX_CONNECTIONS
    block_on_close = False

    def __init__(self, host: str, port: int, answers: Mapping[str, Callable[[], Answer]]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.answers = answers
        self._free = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__((host, port), _Handler)
        self.is_local = ipaddress.ip_address(str(self.server_address[0])).is_loopback
        self.local_names = _LOCAL_NAMES | {host.lower()}

    def server_bind(self) -> None:
        """Bind without asking for the name of this machine, which may take seconds and go to another host."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless too many are answered already."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and let the next one in."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: whoever asked has gone away, and the pipeline does not care."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SECONDS_FOR_A_REQUEST

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def version_string(self) -> str:
        """Tell neither version nor Python."""
        return "semistream"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: the log belongs to the pipeline."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Answer what could not be understood, without repeating it."""
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self.close_connection = True
        self._send(text_answer(f"{status.phrase}.\n", status), with_body=self.command != "HEAD")

    def _answer(self, *, with_body: bool) -> None:
        if self.server.is_local and not self._is_named_local():
            refusal = (
                "This page answers only requests to localhost: set [statistics] host to be asked by other names.\n"
            )
            self._send(text_answer(refusal, HTTPStatus.FORBIDDEN), with_body=with_body)
            return
        answer = self.server.answers.get(self.path.partition("?")[0])
        if answer is None:
            self._send(text_answer("Not Found.\n", HTTPStatus.NOT_FOUND), with_body=with_body)
            return
        try:
            made = answer()
        except Exception:
            made = text_answer("The numbers could not be put together.\n", HTTPStatus.INTERNAL_SERVER_ERROR)
        self._send(made, with_body=with_body)

    def _is_named_local(self) -> bool:
        """Say whether the Host header names this machine; its port may be that of a tunnel."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1:
            return False
        name = hosts[0].strip().lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        elif name.count(":") == 1:
            name = name.partition(":")[0]
        return name in self.server.local_names

    def _send(self, answer: Answer, *, with_body: bool) -> None:
        self.send_response(answer.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", answer.policy)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        if answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if with_body:
            self.wfile.write(answer.body)
