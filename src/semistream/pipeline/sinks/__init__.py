"""Where the rows of a pipeline go: one module for each kind of sink, behind one contract."""

from __future__ import annotations

from semistream.pipeline.sinks.contract import Guarantee, Sink, WrittenBatches
from semistream.pipeline.sinks.kinds import sink_of

__all__ = ["Guarantee", "Sink", "WrittenBatches", "sink_of"]
