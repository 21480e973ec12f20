"""Joins of Arrow record batches with a master table, without Spark."""

from semistream.joining.batches import JoinedBatches, join
from semistream.joining.session import JoinSession

__all__ = ["JoinSession", "JoinedBatches", "join"]
