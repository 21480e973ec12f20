"""Where Flink finds PostgreSQL, in the words of JDBC."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from semistream_lab.peers.contract import PeerFailedError
from semistream_lab.peers.lookups.postgresql_table import Reached

_DRIVER_READS = ("sslmode", "sslrootcert")


@dataclass(frozen=True)
class JdbcServer:
    """The address of a database; the password is apart from it and is never shown."""

    url: str
    user: str
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, reached: Reached) -> JdbcServer:
        """Return how Flink reaches the same server, or raise PeerFailedError if that is not by TCP."""
        if not reached.host or reached.host.startswith("/"):
            raise PeerFailedError(
                "Flink reaches PostgreSQL by TCP only: name the host in SEMISTREAM_PEERS_POSTGRESQL, as 127.0.0.1."
            )
        options = urlencode({name: reached.parameters[name] for name in _DRIVER_READS if name in reached.parameters})
        host = f"[{reached.host}]" if ":" in reached.host else reached.host
        url = f"jdbc:postgresql://{host}:{reached.port}/{quote(reached.database, safe='')}"
        return cls(f"{url}?{options}" if options else url, reached.user, reached.password)
