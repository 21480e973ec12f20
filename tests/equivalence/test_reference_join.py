"""Every algorithm, every kind of join, every kind of key: the rows of the reference join, none lost, none twice."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from equivalence_runs import (
    PROFILES,
    assert_joined_as_reference,
    every_algorithm,
    every_how,
    examples,
    weak_hash,
)
from hypothesis import given
from hypothesis import strategies as st

from semistream.master_table import MasterTable
from semistream.store.contract import MasterStore
from semistream.store.memory import MemoryStore
from semistream.testing.strategies import KEY_KINDS, JoinCase, join_cases, memory_sizes

profiles = st.sampled_from(list(PROFILES))
hashed = join_cases(kinds=[kind for kind in KEY_KINDS if kind.name in ("string", "binary", "decimal", "float")])


def in_memory(case: JoinCase) -> MasterStore:
    on_duplicate = "error" if case.unique else "all"
    return MemoryStore(case.master, case.key, rows_per_page=case.rows_per_page, on_duplicate=on_duplicate)


@every_how
@every_algorithm
def test_output_is_that_of_the_reference(algorithm: str, how: str) -> None:
    @examples(20)
    @given(join_cases(), memory_sizes(), profiles)
    def holds(case: JoinCase, memory: int, profile: str) -> None:
        assert_joined_as_reference(case, in_memory(case), algorithm=algorithm, how=how, memory=memory, profile=profile)

    holds()


@every_how
@every_algorithm
def test_every_master_row_of_a_key_is_a_match(algorithm: str, how: str) -> None:
    @examples(8)
    @given(join_cases(unique=False), memory_sizes(), profiles)
    def holds(case: JoinCase, memory: int, profile: str) -> None:
        assert_joined_as_reference(case, in_memory(case), algorithm=algorithm, how=how, memory=memory, profile=profile)

    holds()


@every_how
@every_algorithm
def test_keys_with_one_hash_are_told_apart(algorithm: str, how: str) -> None:
    @examples(8)
    @given(hashed, memory_sizes())
    def holds(case: JoinCase, memory: int) -> None:
        with weak_hash():
            assert_joined_as_reference(
                case, in_memory(case), algorithm=algorithm, how=how, memory=memory, profile="small parts"
            )

    holds()


@every_algorithm
def test_output_is_that_of_the_reference_over_a_paged_file(algorithm: str) -> None:
    @examples(6)
    @given(join_cases(), memory_sizes(), profiles, st.sampled_from(["inner", "left"]), st.booleans())
    def holds(case: JoinCase, memory: int, profile: str, how: str, colliding: bool) -> None:
        with TemporaryDirectory() as folder, weak_hash(4 if colliding else 2**62):
            path = Path(folder) / "master"
            table = MasterTable.build(case.master, path, case.key, page_bytes=512)
            with table.open() as store:
                assert_joined_as_reference(case, store, algorithm=algorithm, how=how, memory=memory, profile=profile)

    holds()
