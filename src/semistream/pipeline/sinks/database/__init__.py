"""Tables of databases as sinks: executors fill a staging table, and one transaction of the driver does the rest."""

from __future__ import annotations

from semistream.pipeline.sinks.database.table import DatabaseTable

__all__ = ["DatabaseTable"]
