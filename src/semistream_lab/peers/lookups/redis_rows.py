"""Look-up in Redis."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from semistream_lab.peers.contract import Bench, PeerFailedError
from semistream_lab.peers.lookups.lookup import LookupPeer, RowSource, packed, rows_of, unpacked
from semistream_lab.peers.lookups.lru_rows import Row
from semistream_lab.peers.optional_package import why_missing

_HASH = "semistream-peers-master"
_SECONDS_TO_CONNECT = 5
_ROWS_A_REQUEST = 10_000


@dataclass(frozen=True)
class RedisRows(RowSource):
    """Packed rows in one hash of a server; the address may hold a password and is never shown."""

    address: str = field(repr=False)

    def rows(self, keys: Sequence[int]) -> dict[int, Row]:
        """Return the rows of the keys with one request."""
        with _errors_without_address():
            values = _client(self.address).hmget(_HASH, keys)
        return {key: unpacked(value) for key, value in zip(keys, values, strict=True) if value is not None}


class RedisLookup(LookupPeer):
    """The whole master table in the memory of a server; the hash is made anew and removed at the end."""

    name = "redis"
    summary = "mapInPandas, LRU of rows, Redis (all in its memory) behind it"

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._made = False

    def why_unavailable(self) -> str | None:
        """Return one sentence if the package, the address or the server is missing."""
        if self._address is None:
            return "No server was named: set SEMISTREAM_PEERS_REDIS to its address."
        if (missing := why_missing("redis")) is not None:
            return missing
        try:
            with _errors_without_address():
                _client(self._address).ping()
        except PeerFailedError as error:
            return str(error)
        return None

    def prepare(self, bench: Bench) -> None:
        """Load the hash."""
        with _errors_without_address():
            client = _client(self._given())
            client.unlink(_HASH)
            self._made = True
            for chunk in bench.data.chunks():
                for start in range(0, chunk.num_rows, _ROWS_A_REQUEST):
                    rows = rows_of(chunk.slice(start, _ROWS_A_REQUEST))
                    client.hset(_HASH, mapping={str(key): packed(row) for key, row in rows})

    def source(self) -> RedisRows:
        """Return the hash."""
        return RedisRows(self._given())

    def clean_up(self) -> None:
        """Remove the hash, if it was made here."""
        if self._made:
            with suppress(PeerFailedError), _errors_without_address():
                _client(self._given()).unlink(_HASH)

    def _given(self) -> str:
        assert self._address is not None
        return self._address


@contextmanager
def _errors_without_address() -> Iterator[None]:
    """Turn errors of the server into one sentence, because their own may repeat the address."""
    import redis

    try:
        yield
    except (redis.RedisError, ValueError) as error:
        kind = type(error).__name__
        raise PeerFailedError(
            f"Redis returned an error ({kind}): check SEMISTREAM_PEERS_REDIS and the server."
        ) from None


@functools.cache
def _client(address: str) -> Any:
    """Return the client of this process."""
    import redis

    return redis.Redis.from_url(address, socket_connect_timeout=_SECONDS_TO_CONNECT)
