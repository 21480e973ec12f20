"""A recorded stream comes back as it was, and a damaged recording is noticed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from semistream.core.arrays import Float64Array, Int64Array
from semistream.core.errors import CorruptTableError, InvalidSettingError
from semistream.generator import BurstyArrivals, Workload, ZipfKeys
from semistream_lab.workload import record, replay

TUPLES = 150_000


def _workload(arrivals: bool = True) -> Workload:
    return Workload(ZipfKeys(1_000, 1.0, seed=1), BurstyArrivals(1.0, seed=1) if arrivals else None)


def _all(workload: Workload, size: int) -> tuple[Int64Array, Float64Array]:
    chunks = list(workload.chunks(size))
    moments = [moments for _, moments in chunks if moments is not None]
    return np.concatenate([keys for keys, _ in chunks]), np.concatenate(moments)


@pytest.mark.parametrize("size", [1_000, 65_536, 100_000, 10**6])
def test_a_replayed_stream_is_the_recorded_one_in_chunks_of_any_size(tmp_path: Path, size: int) -> None:
    trace = tmp_path / "sales.trace"
    assert record(_workload(), trace, TUPLES) == TUPLES
    keys, moments = _all(replay(trace), size)
    [(expected_keys, expected_moments)] = _workload().chunks(TUPLES, TUPLES)
    np.testing.assert_array_equal(keys, expected_keys)
    np.testing.assert_array_equal(moments, expected_moments)


def test_a_trace_is_an_arrow_file_with_a_format_version(tmp_path: Path) -> None:
    record(_workload(), tmp_path / "trace", 10)
    with pa.OSFile(str(tmp_path / "trace")) as file, pa.ipc.open_file(file) as reader:
        assert reader.schema.names == ["key", "arrival_seconds"]
        assert reader.schema.metadata == {b"semistream.trace.version": b"1"}


def test_a_stream_without_arrival_times_is_replayed_without_them(tmp_path: Path) -> None:
    record(_workload(arrivals=False), tmp_path / "trace", 10)
    [(keys, moments)] = replay(tmp_path / "trace").chunks(100)
    assert len(keys) == 10
    assert moments is None


def test_a_replayed_stream_can_be_recorded_again_and_says_where_it_ended(tmp_path: Path) -> None:
    record(_workload(), tmp_path / "first", 1_000)
    assert record(replay(tmp_path / "first"), tmp_path / "second", 5_000) == 1_000
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_an_empty_trace_has_no_chunks(tmp_path: Path) -> None:
    assert record(_workload(), tmp_path / "trace", 0) == 0
    assert list(replay(tmp_path / "trace").chunks(10)) == []


def test_a_recording_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    class FailingKeys:
        def draw(self, count: int) -> Int64Array:
            raise RuntimeError(f"no more than {count} keys")

    with pytest.raises(RuntimeError, match="no more than"):
        record(Workload(FailingKeys()), tmp_path / "trace", 10)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_trace_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match=r"There is no trace at .*nowhere: record one first\."):
        replay(tmp_path / "nowhere")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match=r"There is no folder .*nowhere"):
        record(_workload(), tmp_path / "nowhere" / "trace", 1)


@pytest.mark.parametrize("content", [b"", b"not an Arrow file at all, but quite long", b"ARROW1\0\0ARROW1"])
def test_a_file_that_is_not_arrow_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "trace").write_bytes(content)
    with pytest.raises(CorruptTableError, match=r"is not a complete Arrow file: record the trace again\."):
        replay(tmp_path / "trace")


def test_a_truncated_trace_is_refused(tmp_path: Path) -> None:
    record(_workload(), tmp_path / "trace", 1_000)
    content = (tmp_path / "trace").read_bytes()
    for length in (len(content) - 1, len(content) // 2, 9):
        (tmp_path / "trace").write_bytes(content[:length])
        with pytest.raises(CorruptTableError):
            replay(tmp_path / "trace")


@pytest.mark.parametrize("place", [0.1, 0.3, 0.7, 0.9])
def test_a_flipped_bit_in_the_data_is_noticed(tmp_path: Path, place: float) -> None:
    record(_workload(), tmp_path / "trace", 10_000)
    content = bytearray((tmp_path / "trace").read_bytes())
    content[int(len(content) * place)] ^= 4
    (tmp_path / "trace").write_bytes(content)
    with pytest.raises(CorruptTableError, match=r"The trace .* is damaged: record it again\."):
        _all(replay(tmp_path / "trace"), 1_000)


def _write(path: Path, schema: pa.Schema) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema):
        pass


def test_an_arrow_file_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "trace", pa.schema([("key", pa.int64())]))
    with pytest.raises(InvalidSettingError, match="is an Arrow file but not a trace"):
        replay(tmp_path / "trace")


def test_a_trace_of_another_format_version_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "trace", pa.schema([("key", pa.int64())], metadata={"semistream.trace.version": "2"}))
    with pytest.raises(InvalidSettingError, match=r"is a trace of format 2, but .* reads format 1: record it again\."):
        replay(tmp_path / "trace")


def test_a_trace_with_other_columns_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "trace", pa.schema([("key", pa.string())], metadata={"semistream.trace.version": "1"}))
    with pytest.raises(CorruptTableError, match="is damaged"):
        replay(tmp_path / "trace")
