"""Measures the cost constants of this machine and a store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from semistream.core.costs import CostProfile
from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream_lab.cost.bare_rounds import measure_round
from semistream_lab.cost.machine import this_machine
from semistream_lab.cost.processor_times import measure_processor
from semistream_lab.cost.profile_files import Evidence
from semistream_lab.cost.request_fit import fit_requests
from semistream_lab.cost.request_times import Progress, measure_requests

SCRATCH_ROW_BYTES = 120
_PAYLOAD_BYTES = 100
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class Calibration:
    """A measured profile, with what it was measured from."""

    profile: CostProfile
    evidence: Evidence


def calibrate(
    master: MasterTable, *, name: str = "measured", direct: bool | None = None, progress: Progress | None = None
) -> Calibration:
    """Measure what reads of this table and the parts of a join cost on this machine; some seconds.

    With `direct` reads go past the page cache of the operating system, so that the disk is measured and not memory; by
    default they do where the file system allows it.
    """
    store, is_direct = _opened(master, direct)
    with store:
        requests = measure_requests(store, progress=progress)
        processor = measure_processor(store, progress=progress)
    profile = CostProfile(
        name=name,
        **asdict(fit_requests(requests)),
        **asdict(processor),
        round_seconds=measure_round(progress=progress),
        row_seconds=0.0,  # the waiting tuples are looked up in the page, not its rows among them
    )
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    return Calibration(profile, Evidence(this_machine(master.path), moment, is_direct, tuple(requests)))


def build_scratch_table(path: Path, size_bytes: int, progress: Progress | None = None) -> MasterTable:
    """Build a master table of about `size_bytes` to read from: the papers' rows of 120 bytes, filled with noise."""
    row_count = size_bytes // SCRATCH_ROW_BYTES
    if row_count < 1:
        raise InvalidSettingError(f"A table of {size_bytes} bytes has no row: give a larger size.")

    def report(_: str, done: int, __: int | None) -> None:
        if progress is not None:
            progress("Building a table to read from", done, row_count)

    return MasterTable.build(_scratch_rows(row_count), path, "key", progress=report)


def _opened(master: MasterTable, direct: bool | None) -> tuple[MasterStore, bool]:
    if direct is False:
        return master.open(), False
    try:
        return master.open(direct=True), True
    except SemistreamError:
        if direct:
            raise
        # A table that is damaged fails here, too.
        return master.open(), False


def _scratch_rows(row_count: int) -> Iterator[pa.RecordBatch]:
    noise = pa.py_buffer(np.random.default_rng(0).bytes(_BATCH_ROWS * _PAYLOAD_BYTES))
    for start in range(0, row_count, _BATCH_ROWS):
        count = min(_BATCH_ROWS, row_count - start)
        payload = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_PAYLOAD_BYTES), count, [None, noise])
        keys = pa.array(np.arange(start + 1, start + count + 1, dtype=np.int64))
        yield pa.RecordBatch.from_pydict({"key": keys, "payload": payload})
