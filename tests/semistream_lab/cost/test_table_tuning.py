"""Parameters for one table, handed to a join."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import semistream as ss
from semistream.algorithms.registry import ALGORITHMS
from semistream.core.errors import UnknownAlgorithmError
from semistream.store.memory import MemoryStore
from semistream_lab.cost import parameters_for

_LONG_TO_TUNE = ("op-cachejoin", "cachejoin-l", "cachejoin-pq")


@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(name, marks=pytest.mark.slow if name in _LONG_TO_TUNE else ()) for name in ALGORITHMS],
)
def test_a_join_with_tuned_parameters_gives_the_same_rows(algorithm: str) -> None:
    store = MemoryStore(pa.table({"id": np.arange(5000), "v": np.arange(5000) * 3}), "id")
    stream = [
        pa.record_batch({"id": np.arange(400) * 7 % 6000, "row": np.arange(400) + 400 * number}) for number in range(10)
    ]
    parameters = parameters_for(store, memory="3MB", algorithm=algorithm, skew=0.8)
    tuned = ss.join(stream, store, on="id", how="left", memory="3MB", algorithm=algorithm, parameters=parameters)
    plain = ss.join(stream, store, on="id", how="left", memory="3MB", algorithm="oracle")
    assert tuned.read_all().sort_by("row").equals(plain.read_all().sort_by("row"))


def test_parameters_are_found_for_a_table_on_disk_by_its_path(tmp_path: Path) -> None:
    table = pa.table({"id": np.arange(50_000), "v": np.arange(50_000) * 3})
    master = ss.MasterTable.build(table, tmp_path / "master", key="id")
    by_path = parameters_for(str(master.path), memory="3MB", algorithm="hybridjoin")
    assert by_path == parameters_for(master, memory="3MB", algorithm="hybridjoin")
    assert "read_bytes" in by_path


def test_an_empty_table_has_nothing_to_tune() -> None:
    empty = MemoryStore(pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}), "id")
    assert parameters_for(empty) == {}


def test_an_unknown_algorithm_is_refused() -> None:
    empty = MemoryStore(pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}), "id")
    with pytest.raises(UnknownAlgorithmError):
        parameters_for(empty, algorithm="magic")
