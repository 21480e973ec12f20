"""A proxy on loopback between a client and a database server, which loses the answer to one statement."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class LostAnswers:
    """Hands bytes on in both directions; the server does what `statement` asks, but its answer never arrives.

    After the loss the connection is closed, and later ones go through unharmed.
    """

    def __init__(self, port: int, statement: bytes, times: int = 1) -> None:
        self._server = ("127.0.0.1", port)
        self._statement = statement
        self._left = times
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.lost = 0
        """How many answers were lost."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                losing = threading.Event()
                threading.Thread(target=self._to_server, args=(client, server, losing), daemon=True).start()
                threading.Thread(target=self._to_client, args=(client, server, losing), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                with self._lock:
                    if self._left and self._statement in data:
                        self._left -= 1
                        losing.set()
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _to_client(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if losing.is_set():
                    self.lost += 1
                    break
                client.sendall(data)
        for side in (client, server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)  # the other thread may wait for it, and would keep it open
            side.close()
