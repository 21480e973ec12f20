"""A stream of tuples: keys, and when they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Float64Array, Int64Array, UInt8Array
from semistream.core.errors import InvalidSettingError
from semistream.generator.arrival_times import ArrivalSource
from semistream.generator.settings import whole_number
from semistream.generator.stream_keys import KeySource


@runtime_checkable
class Seekable(Protocol):
    """Can go on from any position of its stream."""

    def seek(self, position: int) -> None:
        """Let the stream go on with the tuple at `position`, from 0 on."""


class Workload:
    """A stream of tuples that goes on from call to call; without arrivals all tuples are there from the start."""

    def __init__(self, keys: KeySource, arrivals: ArrivalSource | None = None) -> None:
        self.keys = keys
        self.arrivals = arrivals
        self._tuples = 0

    @property
    def has_arrivals(self) -> bool:
        """Whether the tuples have arrival times."""
        return self.arrivals is not None

    def seek(self, position: int) -> None:
        """Let the next chunk begin with the tuple at `position`, from 0 on; costs the same for any position.

        Raises InvalidSettingError if a source can only be read from its beginning, as a recorded one.
        """
        position = whole_number("position", position, minimum=0)
        sources = [source for source in (self.keys, self.arrivals) if source is not None]
        seekable = [source for source in sources if isinstance(source, Seekable)]
        if len(seekable) < len(sources):
            raise InvalidSettingError("This stream can only be read from its beginning: replay it instead.")
        for source in seekable:
            source.seek(position)
        self._tuples = position

    def chunks(self, size: int, total: int | None = None) -> Iterator[tuple[Int64Array, Float64Array | None]]:
        """Yield keys and arrival seconds, `size` tuples at a time, until `total` tuples or the end of the sources.

        Without `total`, a generated stream never ends. The last chunk may be shorter; none is empty.
        """
        size = whole_number("size", size, minimum=1)
        left = None if total is None else whole_number("total", total, minimum=0)
        return self._chunks(size, left)

    def batches(
        self, size: int, total: int | None = None, payload_bytes: int = 12, key_name: str = "key"
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches of the key and a payload of fixed width, by default the papers' 20 bytes a tuple.

        The payload is the tuple's number in the stream, lowest byte first; with `payload_bytes` 0 there is none.
        """
        payload_bytes = whole_number("payload_bytes", payload_bytes, minimum=0)
        fields = [pa.field(key_name, pa.int64(), nullable=False)]
        if payload_bytes:
            fields.append(pa.field("payload", pa.binary(payload_bytes), nullable=False))
        return self._batches(self.chunks(size, total), pa.schema(fields), payload_bytes)

    def _chunks(self, size: int, left: int | None) -> Iterator[tuple[Int64Array, Float64Array | None]]:
        while left is None or left > 0:
            wanted = size if left is None else min(size, left)
            keys = self.keys.draw(wanted)
            moments = None if self.arrivals is None else self.arrivals.take(len(keys))
            if moments is not None:
                keys = keys[: len(moments)]
            if len(keys):
                self._tuples += len(keys)
                yield keys, moments
            if len(keys) < wanted:
                return
            if left is not None:
                left -= wanted

    def _batches(
        self, chunks: Iterator[tuple[Int64Array, Float64Array | None]], schema: pa.Schema, payload_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        for keys, _ in chunks:
            columns = [pa.array(keys)]
            if payload_bytes:
                payload = _tuple_numbers(self._tuples - len(keys), len(keys), payload_bytes)
                columns.append(
                    pa.FixedSizeBinaryArray.from_buffers(
                        pa.binary(payload_bytes), len(keys), [None, pa.py_buffer(payload)]
                    )
                )
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _tuple_numbers(first: int, count: int, width_bytes: int) -> UInt8Array:
    numbers = np.arange(first, first + count, dtype="<i8").view(np.uint8).reshape(count, 8)
    payload = np.zeros((count, width_bytes), dtype=np.uint8)
    payload[:, :8] = numbers[:, :width_bytes]
    return payload
