"""semistream joins a stream with a master table far bigger than memory, inside a fixed byte budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from semistream.core.errors import SemistreamError

if TYPE_CHECKING:
    from semistream.joining import JoinedBatches, join
    from semistream.master_table import MasterTable
    from semistream.mirrors.database import DatabaseSource
    from semistream.mirrors.delta import DeltaSource
    from semistream.mirrors.files import FileSource
    from semistream.mirrors.kafka import KafkaSource
    from semistream.spark.batch_progress import progress
    from semistream.spark.dimension import Dimension
    from semistream.spark.enrichment import enrich

__version__ = "0.1.0"
__all__ = [
    "DatabaseSource",
    "DeltaSource",
    "Dimension",
    "FileSource",
    "JoinedBatches",
    "KafkaSource",
    "MasterTable",
    "SemistreamError",
    "enrich",
    "join",
    "progress",
]

_HOMES = {
    "Dimension": "semistream.spark.dimension",
    "enrich": "semistream.spark.enrichment",
    "join": "semistream.joining",
    "JoinedBatches": "semistream.joining",
    "MasterTable": "semistream.master_table",
    "DatabaseSource": "semistream.mirrors.database",
    "DeltaSource": "semistream.mirrors.delta",
    "FileSource": "semistream.mirrors.files",
    "KafkaSource": "semistream.mirrors.kafka",
    "progress": "semistream.spark.batch_progress",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that a command line that only prints help does not wait for Arrow and numba.
    if name not in _HOMES:
        raise AttributeError(f"module 'semistream' has no attribute {name!r}")
    import importlib

    loaded = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = loaded
    return loaded


def __dir__() -> list[str]:
    # Names that are loaded on first use are there for whoever looks.
    return sorted({*globals(), *__all__})
