"""What a join counts while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass
class JoinStats:
    """Counters of one join; all of them only grow, but for the memory by component."""

    tuples_in: int = 0
    """Stream tuples taken from the input."""
    tuples_out: int = 0
    """Stream tuples that have left: answered, absent, refused or with a null key."""
    cache_hits: int = 0
    """Stream tuples answered from cached master data."""
    read_hits: int = 0
    """Stream tuples answered by a read of master data."""
    absent: int = 0
    """Stream tuples whose key the master table does not have."""
    null_keys: int = 0
    """Stream tuples with a null in their key."""
    stayed: int = 0
    """Stream tuples that stay for a later run of the join."""
    refused: int = 0
    """Stream tuples sent to the dead letters because a row or page was too large for the budget."""
    iterations: int = 0
    """Rounds of the disk phase."""
    page_reads: int = 0
    """Pages read, each time they are read."""
    read_requests: int = 0
    """Requests to the store; neighbouring pages may share one."""
    bytes_read: int = 0
    """Bytes asked of the store."""
    read_seconds: float = field(default=0.0, compare=False)
    """Real time that the join spent in reads, or waiting for them, whatever its clock."""
    cache_admissions: int = 0
    """Master tuples that entered the cache."""
    cache_evictions: int = 0
    """Master tuples that were overwritten in the cache."""
    shadow_hits: int = 0
    """Stream tuples that the cache did not answer, but one of twice the size would have: an estimate."""
    remote_requests: int = 0
    """Requests for master data to an object store."""
    remote_bytes: int = 0
    """Bytes of master data that an object store has sent."""
    tier_hits: int = 0
    """Stretches of master data that were read from the tier on the local disk."""
    tier_misses: int = 0
    """Stretches of master data of which the tier lacked a block."""
    tier_blocks: int = 0
    """Blocks that were fetched into the tier."""
    tier_failures: int = 0
    """How often the tier could not keep what was fetched, as on a full disk; it then pauses for a minute."""
    tier_bytes: int = 0
    """What the tier takes on the disk."""
    max_wait_seconds: float = 0.0
    """The longest time a tuple waited inside the join."""
    wait_seconds_total: float = 0.0
    """Time inside the join, summed over all tuples."""
    max_wait_tuples: int = 0
    """The most tuples that arrived while one tuple waited."""
    memory_bytes: dict[str, int] = field(default_factory=dict)
    """Bytes held by each component."""

    def count_traffic(self, traffic: object) -> None:
        """Take over what a store has counted, by the same names."""
        for name in _TRAFFIC:
            setattr(self, name, getattr(traffic, name))

    @property
    def mean_wait_seconds(self) -> float:
        """Mean time inside the join of the tuples that left."""
        return self.wait_seconds_total / self.tuples_out if self.tuples_out else 0.0

    def since(self, earlier: JoinStats) -> JoinStats:
        """Return what was counted after `earlier`; maxima and memory stay as they are."""
        difference = {
            f.name: getattr(self, f.name) if f.name in _KEPT else getattr(self, f.name) - getattr(earlier, f.name)
            for f in fields(self)
        }
        return JoinStats(**difference)

    def after(self, earlier: JoinStats) -> JoinStats:
        """Return what this and an earlier join have counted together, with the memory of this one."""
        both = {f.name: getattr(self, f.name) + getattr(earlier, f.name) for f in fields(self) if f.name not in _KEPT}
        return JoinStats(
            **both,
            max_wait_seconds=max(self.max_wait_seconds, earlier.max_wait_seconds),
            max_wait_tuples=max(self.max_wait_tuples, earlier.max_wait_tuples),
            memory_bytes=self.memory_bytes,
            tier_bytes=self.tier_bytes,
        )


_KEPT = {"max_wait_seconds", "max_wait_tuples", "memory_bytes", "tier_bytes"}
"""What is not summed up."""
_TRAFFIC = tuple(f.name for f in fields(JoinStats) if f.name.startswith(("remote_", "tier_")))
