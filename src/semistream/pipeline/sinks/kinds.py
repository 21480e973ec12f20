"""Which sink a description names."""

from __future__ import annotations

from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.sinks.contract import Sink
from semistream.pipeline.sinks.delta import Delta
from semistream.pipeline.sinks.files import AnyFormat, Console, Files, Nothing
from semistream.pipeline.sinks.kafka import Topic


def sink_of(description: PipelineDescription) -> Sink:
    """Return the sink of a pipeline; nothing is opened."""
    match description.sink.format:
        case "delta":
            return Delta(description)
        case "kafka":
            return Topic(description)
        case "postgresql" | "mysql":
            # It asks for a driver, which only those need who have a database.
            from semistream.pipeline.sinks.database import DatabaseTable

            return DatabaseTable(description)
        case "console":
            return Console(description)
        case "noop":
            return Nothing(description)
        case _:
            return Files(description) if description.sink.has_file_log else AnyFormat(description)
