"""The command that tunes: what it prints and writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from command_line import fail, flat_objects, succeed

from semistream.master_table import MasterTable

SMALL = ("--master-rows", "20000", "--memory", "1MB")


def test_the_best_parameters_and_the_curve_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "tune.json"
    shown = succeed("lab", "tune", "--algorithm", "optimised-x-hybridjoin", *SMALL, "--json", file)
    assert "read_bytes=" in shown
    assert "cache_share=" in shown
    assert "20,000 master rows" in shown
    rows = flat_objects(file.read_text())
    best = [row for row in rows if row["best"]]
    assert len(best) == 1
    assert best[0]["service_rate"] == max(row["service_rate"] for row in rows)
    assert best[0]["service_rate"] >= best[0]["default_rate"]
    assert {row["by"] for row in rows} == {"model"}


def test_measuring_shows_both_choices_and_their_distance(tmp_path: Path) -> None:
    file = tmp_path / "tune.json"
    shown = succeed("lab", "tune", "--algorithm", "hybridjoin", *SMALL, "--empirical", "--json", file)
    assert "below the best that was measured" in shown
    rows = flat_objects(file.read_text())
    assert {row["by"] for row in rows} == {"model", "measurement"}
    assert all(0 <= row["distance"] < 0.2 for row in rows)


def test_several_algorithms_are_shown_in_one_table() -> None:
    shown = succeed("lab", "tune", "--algorithm", "meshjoin,hybridjoin,inlj", *SMALL)
    for name in ("meshjoin", "hybridjoin", "inlj"):
        assert name in shown
    assert "inlj has nothing to tune" in shown


def test_an_existing_table_is_tuned_by_its_own_size(tmp_path: Path) -> None:
    keys = pa.table({"key": np.arange(3_000, dtype=np.int64) * 7, "name": [f"row {n}" for n in range(3_000)]})
    MasterTable.build(keys, tmp_path / "master", "key")
    file = tmp_path / "tune.json"
    succeed(
        "lab", "tune", "--algorithm", "hybridjoin", "--memory", "2MB", "--master", tmp_path / "master", "--json", file
    )
    rows = flat_objects(file.read_text())
    assert {row["master_rows"] for row in rows} == {3_000}
    assert {row["profile"] for row in rows} == {"ssd"}
    assert {row["accounting"] for row in rows} == {"real"}


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    assert "choose one of" in fail("lab", "tune", "--algorithm", "nojoin")
    assert "contradict" in fail("lab", "tune", "--master", tmp_path, *SMALL)
    assert "give at least" in fail("lab", "tune", "--algorithm", "hybridjoin", "--memory", "10kB")
    assert "give more memory" in fail("lab", "tune", "--algorithm", "hybridjoin,meshjoin", "--memory", "10kB")
    assert "profile" in fail("lab", "tune", "--algorithm", "hybridjoin", "--profile", "nothing", *SMALL)
