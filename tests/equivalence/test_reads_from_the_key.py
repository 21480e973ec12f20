"""With reads that begin at the page of a key, every algorithm that loads pages by keys gives the reference's rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from equivalence_runs import SMALL_PARTS, assert_joined_as_reference, examples, standstill_fails, time_limit, weak_hash
from hypothesis import given
from hypothesis import strategies as st
from test_fat_rows_and_many_matches import assert_joined, master_of, stream_of
from test_reference_join import in_memory

from semistream.algorithms.registry import ALGORITHMS
from semistream.engine.assembly import Assembly
from semistream.joining import join, session
from semistream.store.counting import CountingStore
from semistream.store.memory import MemoryStore
from semistream.testing.strategies import JoinCase, join_cases, memory_sizes

by_key = pytest.mark.parametrize("algorithm", [name for name, recipe in ALGORITHMS.items() if recipe.loads_by_key])
PAGES = 3


@contextmanager
def reads_from_the_key() -> Iterator[None]:
    """Let joins read from the key on, which none of their arguments can ask for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "Assembly", partial(Assembly, partitions="from-key"))
        yield


@by_key
@pytest.mark.parametrize("how", ["inner", "left", "anti"])
def test_output_is_that_of_the_reference(algorithm: str, how: str) -> None:
    @examples(12)
    @given(join_cases(), memory_sizes(), st.booleans(), st.sampled_from(["as shipped", "small parts"]))
    def holds(case: JoinCase, memory: int, colliding: bool, profile: str) -> None:
        with reads_from_the_key(), weak_hash(4 if colliding else 2**62):
            assert_joined_as_reference(
                case, in_memory(case), algorithm=algorithm, how=how, memory=memory, profile=profile
            )

    holds()


@by_key
def test_rows_are_right_where_reads_of_several_pages_overlap(algorithm: str) -> None:
    """Keys come and go, some absent, and reads of three pages begin at every one of them."""
    keys = np.arange(3000)
    random = np.random.default_rng(5)
    store = CountingStore(MemoryStore(pa.table({"id": keys, "v": keys * 3}), "id", rows_per_page=10), log=True)
    asked = np.where(random.random(6000) < 0.5, random.integers(0, 300, 6000), random.integers(-50, 3100, 6000))
    stream = [
        pa.RecordBatch.from_pydict({"id": asked[begin : begin + 500], "row": np.arange(begin, begin + 500)})
        for begin in range(0, 6000, 500)
    ]
    parameters = {
        **{name: value for name, value in SMALL_PARTS.items() if name in ALGORITHMS[algorithm].parameters},
        "read_bytes": PAGES * store.range_bytes(0, 0),
    }
    with reads_from_the_key(), time_limit(60), standstill_fails():
        joined = join(stream, store, on="id", how="left", algorithm=algorithm, memory="200KB", parameters=parameters)
        output = joined.read_all().sort_by("row")
    assert output.column("row").to_pylist() == list(range(6000))
    expected = [int(key) * 3 if 0 <= key < 3000 else None for key in asked]
    assert output.column("v").to_pylist() == expected
    assert store.log is not None
    assert {first % PAGES for first, _ in store.log} == set(range(PAGES))


@by_key
@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
def test_fat_rows_and_many_matches_are_joined_right(algorithm: str, nested: bool) -> None:
    random = np.random.default_rng(11)
    master = master_of(random, key="integers", nested=nested, many=300)
    stream = stream_of(random, key="integers", nested=nested, rows=600)
    store = MemoryStore(master, "key", rows_per_page=8, on_duplicate="all")
    with reads_from_the_key():
        assert_joined(stream, store, master, algorithm=algorithm, how="left")
