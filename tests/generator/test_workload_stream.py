"""A workload is cut into chunks and batches as asked, and goes on where it was left."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pyarrow as pa
import pytest

from semistream.core.arrays import Float64Array
from semistream.core.errors import InvalidSettingError
from semistream.generator import ConstantArrivals, Workload, ZipfKeys


class ThreeArrivals:
    """Ends after three tuples."""

    def __init__(self) -> None:
        self._left = 3

    def take(self, count: int) -> Float64Array:
        given = min(count, self._left)
        self._left -= given
        return np.zeros(given)


def _workload(rate: float | None = None) -> Workload:
    return Workload(ZipfKeys(100, 1.0, seed=1), None if rate is None else ConstantArrivals(rate))


def test_chunks_have_the_size_that_was_asked_for_and_the_last_one_the_rest() -> None:
    assert [len(keys) for keys, _ in _workload().chunks(4, 10)] == [4, 4, 2]


def test_no_tuples_are_no_chunks() -> None:
    assert list(_workload().chunks(4, 0)) == []


def test_without_a_total_the_stream_never_ends() -> None:
    assert sum(len(keys) for keys, _ in islice(_workload().chunks(10), 1000)) == 10_000


def test_keys_and_arrivals_come_together() -> None:
    [(keys, moments)] = _workload(2.0).chunks(10, 3)
    np.testing.assert_array_equal(keys, ZipfKeys(100, 1.0, seed=1).draw(3))
    assert moments is not None
    assert moments.tolist() == [0.0, 0.5, 1.0]


def test_without_arrivals_there_are_no_times() -> None:
    assert next(_workload().chunks(1))[1] is None
    assert not _workload().has_arrivals
    assert _workload(1.0).has_arrivals


def test_a_workload_goes_on_where_it_was_left() -> None:
    workload = _workload(1.0)
    first = list(workload.chunks(7, 21))
    second = list(workload.chunks(5, 10))
    keys = np.concatenate([keys for keys, _ in first + second])
    np.testing.assert_array_equal(keys, ZipfKeys(100, 1.0, seed=1).draw(31))
    moments = second[-1][1]
    assert moments is not None
    assert moments[-1] == 30.0


def test_the_stream_ends_when_a_source_ends() -> None:
    workload = Workload(ZipfKeys(100, 1.0, seed=1), ThreeArrivals())
    assert [len(keys) for keys, _ in workload.chunks(2)] == [2, 1]
    assert list(workload.chunks(2)) == []


def test_a_batch_is_a_key_and_a_payload_of_twenty_bytes_together() -> None:
    [batch] = _workload().batches(100, 100)
    assert batch.schema.names == ["key", "payload"]
    assert batch.schema.types == [pa.int64(), pa.binary(12)]
    assert batch.nbytes == 20 * 100
    batch.validate(full=True)


def test_the_payload_numbers_the_tuples_across_batches() -> None:
    workload = _workload()
    batches = [*workload.batches(200, 300), *workload.batches(200, 300)]
    numbers = [int.from_bytes(payload, "little") for batch in batches for payload in batch["payload"].to_pylist()]
    assert numbers == list(range(600))


@pytest.mark.parametrize("payload_bytes", [1, 7, 8, 112])
def test_the_payload_has_the_width_that_was_asked_for(payload_bytes: int) -> None:
    [batch] = _workload().batches(10, 10, payload_bytes=payload_bytes, key_name="product_id")
    assert batch.schema.names == ["product_id", "payload"]
    assert {len(payload) for payload in batch["payload"].to_pylist()} == {payload_bytes}


def test_a_payload_of_no_bytes_is_left_out() -> None:
    [batch] = _workload().batches(10, 10, payload_bytes=0)
    assert batch.schema.names == ["key"]


def test_senseless_sizes_are_refused_before_the_first_chunk() -> None:
    with pytest.raises(InvalidSettingError, match="size must be a whole number of at least 1, but 0 was given"):
        _workload().chunks(0)
    with pytest.raises(InvalidSettingError, match="total must be a whole number of at least 0, but -1 was given"):
        _workload().chunks(1, -1)
    with pytest.raises(InvalidSettingError, match="payload_bytes must be a whole number"):
        _workload().batches(1, payload_bytes=-1)
