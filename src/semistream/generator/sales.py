"""The papers' example: sales of products that a warehouse enriches from the product catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from semistream.core.arrays import Float64Array, Int64Array
from semistream.generator.permutation import SeededPermutation
from semistream.generator.randomness import UniformNumbers, random_for
from semistream.generator.settings import whole_number
from semistream.generator.stream import Workload
from semistream.generator.stream_keys import ZipfKeys

PRODUCTS_SCHEMA = pa.schema(
    [
        pa.field("product_id", pa.int64(), nullable=False),
        pa.field("surrogate_key", pa.int64(), nullable=False),
        pa.field("product_name", pa.string(), nullable=False),
        pa.field("supplier_id", pa.int32(), nullable=False),
        pa.field("sale_price", pa.decimal128(9, 2), nullable=False),
    ]
)
SALES_SCHEMA = pa.schema(
    [
        pa.field("sale_id", pa.int64(), nullable=False),
        pa.field("product_id", pa.int64(), nullable=False),
        pa.field("quantity", pa.int32(), nullable=False),
        pa.field("sale_date", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)

_FIRST_SURROGATE_KEY = 1_000_000_001
_QUALITIES = pa.array(["Plain", "Fine", "Light", "Sturdy", "Classic", "Compact", "Quiet", "Bright"])
_THINGS = pa.array(["chair", "lamp", "kettle", "bicycle", "jacket", "radio", "notebook", "tent", "shovel", "mirror"])
_MAX_PRICE_CENTS = 100_000
_MAX_QUANTITY = 12


def products(
    row_count: int, *, seed: int, stride: int = 1, supplier_count: int = 1000, batch_rows: int = 1 << 16
) -> Iterator[pa.RecordBatch]:
    """Yield the master table of products, sorted by product_id, in batches of `batch_rows` rows.

    The ids are the multiples of `stride` from stride to row_count * stride, which are the keys of
    `ZipfKeys(row_count, …, stride=stride)`. The rows depend on the seed, not on the size of the batches.
    """
    row_count = whole_number("row_count", row_count, minimum=0)
    stride = whole_number("stride", stride, minimum=1)
    supplier_count = whole_number("supplier_count", supplier_count, minimum=1)
    batch_rows = whole_number("batch_rows", batch_rows, minimum=1)
    columns = _ProductColumns(max(1, row_count), seed, stride, supplier_count)
    return (columns.batch(start, min(batch_rows, row_count - start)) for start in range(0, row_count, batch_rows))


class _ProductColumns:
    def __init__(self, row_count: int, seed: int, stride: int, supplier_count: int) -> None:
        self._stride = stride
        self._supplier_count = supplier_count
        self._surrogates = SeededPermutation(row_count, random_for("surrogate keys", seed))
        self._name_uniforms = UniformNumbers("product names", seed)
        self._supplier_uniforms = UniformNumbers("product suppliers", seed)
        self._price_uniforms = UniformNumbers("product prices", seed)

    def batch(self, start: int, count: int) -> pa.RecordBatch:
        numbers = np.arange(start, start + count, dtype=np.int64)
        product_ids = (numbers + 1) * self._stride
        surrogates = numbers.copy()
        self._surrogates.apply(surrogates)
        words = _whole_numbers(self._name_uniforms, count, len(_QUALITIES) * len(_THINGS))
        names = pc.binary_join_element_wise(
            _QUALITIES.take(pa.array(words % len(_QUALITIES))),
            _THINGS.take(pa.array(words // len(_QUALITIES))),
            pa.array(product_ids).cast(pa.string()),
            " ",
        )
        suppliers = 1 + _whole_numbers(self._supplier_uniforms, count, self._supplier_count)
        cents = 1 + _whole_numbers(self._price_uniforms, count, _MAX_PRICE_CENTS)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(product_ids),
                pa.array(surrogates + _FIRST_SURROGATE_KEY),
                names,
                pa.array(suppliers.astype(np.int32)),
                _hundredths(cents),
            ],
            schema=PRODUCTS_SCHEMA,
        )


class Sales:
    """A stream of sales whose products and times come from a workload.

    The sale's date is `start` plus the arrival time, or `start` plus one second a sale if the workload has no arrival
    times. Quantities are from 1 to 12, small ones more often. If the workload is generated, the rows of any range of
    positions can be had, in time that does not depend on where the range begins.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        seed: int,
        start: datetime = datetime(2026, 1, 1, tzinfo=UTC),
        first_sale_id: int = 1,
    ) -> None:
        self._workload = workload
        self._uniforms = UniformNumbers("sale quantities", seed)
        self._start_microseconds = round(start.timestamp() * 1e6)
        self._first_sale_id = first_sale_id
        self._sold = 0

    @classmethod
    def of_products(cls, row_count: int, *, seed: int, exponent: float = 1.0, stride: int = 1) -> Sales:
        """Return sales of the products that `products` makes from the same arguments."""
        return cls(Workload(ZipfKeys(row_count, exponent, seed=seed, ranks="shuffled", stride=stride)), seed=seed)

    def batches(self, size: int, total: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the next sales, `size` at a time, until `total` sales or the end of the workload."""
        return (self._batch(keys, moments) for keys, moments in self._workload.chunks(size, total))

    def seek(self, position: int) -> None:
        """Let the next batch begin with the sale at `position`, from 0 on; costs the same for any position."""
        self._workload.seek(position)
        self._uniforms.seek(position)
        self._sold = position

    def rows(self, start: int, end: int, batch_rows: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Yield the sales at the positions from `start` up to `end`, `batch_rows` at a time.

        The rows of a position are the same in whatever range it is asked for. Read one range before the next.
        """
        start = whole_number("start", start, minimum=0)
        end = whole_number("end", end, minimum=start)
        self.seek(start)
        return self.batches(batch_rows, end - start)

    def _batch(self, keys: Int64Array, moments: Float64Array | None) -> pa.RecordBatch:
        numbers = np.arange(self._sold, self._sold + len(keys), dtype=np.int64)
        self._sold += len(keys)
        seconds = numbers if moments is None else moments
        microseconds = self._start_microseconds + np.rint(seconds * 1e6).astype(np.int64)
        quantities = 1 + np.floor(_MAX_QUANTITY * self._uniforms.take(len(keys)) ** 3).astype(np.int32)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(numbers + self._first_sale_id),
                pa.array(keys),
                pa.array(quantities),
                pa.array(microseconds).cast(SALES_SCHEMA.field("sale_date").type),
            ],
            schema=SALES_SCHEMA,
        )


def _whole_numbers(uniforms: UniformNumbers, count: int, limit: int) -> Int64Array:
    """Return `count` numbers from 0 to limit - 1 that do not depend on how the counts are cut."""
    return (uniforms.take(count) * limit).astype(np.int64)


def _hundredths(cents: Int64Array) -> pa.Array:
    return pc.multiply(pa.array(cents).cast(pa.decimal128(19, 0)), Decimal("0.01")).cast(pa.decimal128(9, 2))
