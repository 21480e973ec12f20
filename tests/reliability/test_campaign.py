"""The campaign itself: it notices broken promises, remembers what it has done, and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from campaign import Case, Figures, Promise, run_promise, table_of


def promise_of(fails: set[str], ran: list[str]) -> Promise:
    def case(name: str) -> Case:
        def run(folder: Path) -> Figures:
            assert not list(folder.iterdir())
            ran.append(name)
            if name in fails:
                raise ValueError(f"{name} lost a row")
            return {"rows": 10}

        return Case(name, run)

    def cases(seed: int) -> Iterator[Case]:
        yield from (case(f"{letter}{seed}") for letter in "abc")

    return Promise("letters", "No letter is lost", cases, lambda all_: f"{sum(f['rows'] for f in all_)} rows")


def test_a_broken_promise_is_counted_with_its_case_and_seed(tmp_path: Path) -> None:
    said: list[str] = []
    outcome = run_promise(promise_of({"b5"}, []), 5, tmp_path, said.append)
    assert outcome.broken == {"b5": "ValueError: b5 lost a row"}
    assert any("b5 (seed 5)" in line for line in said)
    assert "| No letter is lost | 3 | 1 | 20 rows |" in table_of([outcome], 5)


def test_finished_cases_are_not_run_again_and_broken_ones_are(tmp_path: Path) -> None:
    run_promise(promise_of({"b1"}, []), 1, tmp_path, lambda _: None)
    ran: list[str] = []
    outcome = run_promise(promise_of(set(), ran), 1, tmp_path, lambda _: None)
    assert ran == ["b1"]
    assert outcome.case_count == 3
    assert not outcome.broken


def test_a_line_that_was_cut_off_is_run_again(tmp_path: Path) -> None:
    run_promise(promise_of(set(), []), 1, tmp_path, lambda _: None)
    path = tmp_path / "letters-1.jsonl"
    path.write_text(path.read_text()[:-10])
    ran: list[str] = []
    run_promise(promise_of(set(), ran), 1, tmp_path, lambda _: None)
    assert ran == ["c1"]
