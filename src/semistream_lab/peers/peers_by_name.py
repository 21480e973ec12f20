"""All peers by their names."""

from __future__ import annotations

from dataclasses import dataclass, field

from semistream.core.errors import InvalidSettingError
from semistream_lab.peers.batch_join import BatchJoin
from semistream_lab.peers.contract import Peer
from semistream_lab.peers.flink.installation import FlinkInstallation
from semistream_lab.peers.flink.lookup_join import FlinkIdentity, FlinkJdbcLookup
from semistream_lab.peers.hash_joins import Duckdb, Polars
from semistream_lab.peers.lookups.lmdb_rows import LmdbLookup
from semistream_lab.peers.lookups.postgresql_rows import PostgresqlLookup
from semistream_lab.peers.lookups.postgresql_table import PostgresqlTable
from semistream_lab.peers.lookups.redis_rows import RedisLookup
from semistream_lab.peers.lookups.sqlite_rows import SqliteLookup
from semistream_lab.peers.spark_joins import BroadcastStream, CachedMaster, Enrich, Identity, NativeJoin


@dataclass(frozen=True)
class Addresses:
    """Where servers and programs are; addresses of servers may hold passwords and are never shown."""

    postgresql: str | None = field(default=None, repr=False)
    redis: str | None = field(default=None, repr=False)
    flink: FlinkInstallation = field(default_factory=FlinkInstallation)


def all_peers(addresses: Addresses) -> list[Peer]:
    """Return every peer, in the order in which they take their turns."""
    table = PostgresqlTable(addresses.postgresql)
    return [
        Identity(),
        Enrich(),
        BatchJoin(),
        NativeJoin(),
        BroadcastStream(),
        CachedMaster(),
        SqliteLookup(),
        LmdbLookup(),
        PostgresqlLookup(table),
        RedisLookup(addresses.redis),
        Duckdb(),
        Polars(),
        FlinkIdentity(addresses.flink),
        FlinkJdbcLookup(addresses.flink, table),
    ]


@dataclass(frozen=True)
class Choice:
    """The peers that take part, and why others do not."""

    peers: list[Peer]
    left_out: dict[str, str]


def chosen_peers(only: str, addresses: Addresses) -> Choice:
    """Return the peers with the names, between commas, or all that can run here if there are no names.

    A peer that is named and cannot run is an error; one that is not named is left out.
    """
    known = {peer.name: peer for peer in all_peers(addresses)}
    names = [name.strip() for name in only.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise InvalidSettingError(f"There is no peer {name!r}: choose from {', '.join(known)}.")
    wanted = [known[name] for name in known if name in names] if names else list(known.values())
    reasons = {peer.name: reason for peer in wanted if (reason := peer.why_unavailable()) is not None}
    if names and reasons:
        name, reason = next(iter(reasons.items()))
        raise InvalidSettingError(f"The peer {name} cannot run here: {reason}")
    return Choice([peer for peer in wanted if peer.name not in reasons], reasons)
