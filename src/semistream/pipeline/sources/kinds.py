"""All kinds of sources by the name of their format."""

from __future__ import annotations

from semistream.pipeline.sources.any_format import AnyFormat
from semistream.pipeline.sources.contract import SourceKind
from semistream.pipeline.sources.files import Files, TextFiles
from semistream.pipeline.sources.generated import GeneratedSales
from semistream.pipeline.sources.lines import LinesFromPort
from semistream.pipeline.sources.topics import Topics

KINDS: dict[str, SourceKind] = {
    "json": TextFiles(),
    "csv": TextFiles(),
    "parquet": Files(),
    "kafka": Topics(),
    "sales": GeneratedSales(),
    "socket": LinesFromPort(),
}
FORMATS_OF_SPARK = ("delta", "iceberg", "orc", "text", "avro", "xml", "binaryFile", "rate", "rate-micro-batch")
"""Formats that are passed on to Spark and that people write often; any other is passed on, too."""
_ANY = AnyFormat()


def kind_of(format_name: str) -> SourceKind:
    """Return the kind of a format; one that is not ours is passed on to Spark."""
    return KINDS.get(format_name, _ANY)


def keys_of_sources() -> tuple[str, ...]:
    """Return the keys that [source] may have, whatever its format."""
    kinds = (*KINDS.values(), _ANY)
    return ("format", *dict.fromkeys(key for kind in kinds for key in kind.keys))
