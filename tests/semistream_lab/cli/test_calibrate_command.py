"""The command that calibrates: what it shows and writes, and that a bench takes its profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import fail, flat_objects, succeed

from semistream.master_table import MasterTable
from semistream_lab.cli.calibrate_rendering import in_units
from semistream_lab.cost.calibration import build_scratch_table
from semistream_lab.cost.profile_files import find_profile

SYMBOLS = ("c_H", "c_O", "c_E", "c_S", "c_A", "c_F", "c_AI")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_scratch_table(tmp_path_factory.mktemp("calibrate") / "master", 1_500_000).path


def test_a_generated_table_is_measured_and_removed(tmp_path: Path) -> None:
    folder, out = tmp_path / "disk", tmp_path / "mine.json"
    folder.mkdir()
    shown = succeed("lab", "calibrate", "--folder", folder, "--size", "2MB", "--out", out)
    assert list(folder.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["mine.json"]
    assert find_profile(str(out)).name == "mine"
    for word in ("8 KiB", "16 at random", "in sequence", "seek", "bandwidth", "Profile mine", *SYMBOLS):
        assert word in shown


def test_an_existing_table_is_measured_and_stays(table: Path, tmp_path: Path) -> None:
    shown = succeed("lab", "calibrate", "--master", table, "--no-direct", "--out", tmp_path / "cached.json")
    assert "read through the page cache" in shown
    assert MasterTable(table).info()["rows"] == 12_500


def test_a_bench_takes_the_profile_by_its_path_on_both_clocks(table: Path, tmp_path: Path) -> None:
    profile, rows = tmp_path / "mine.json", tmp_path / "rows.json"
    succeed("lab", "calibrate", "--master", table, "--out", profile)
    sizes = ("--algorithm", "hybridjoin", "--master-rows", "20000", "--memory", "1MB", "--tuples", "20000")
    for clock in ("model", "wall"):
        succeed("lab", "bench", *sizes, "--clock", clock, "--profile", profile, "--json", rows)
        [row] = flat_objects(rows.read_text())
        assert row["profile"] == str(profile)
        assert row["service_rate"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--master", "t", "--size", "1MB"], "--master contradicts --folder and --size: leave out one or the other"),
        (["--master", "t", "--folder", "."], "--master contradicts --folder and --size: leave out one or the other"),
        (["--master", "nowhere"], "There is no master table at nowhere: build one with `semistream master build`."),
        (["--folder", "nowhere"], "There is no folder nowhere to generate a table in: make it first."),
        (["--size", "much"], "'much' is not a memory size: write a number with KB, MB, GB, KiB, MiB or GiB."),
        (["--size", "50"], "A table of 50 bytes has no row: give a larger size."),
    ],
)
def test_errors_of_calibrate_are_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fail("lab", "calibrate", *arguments, "--out", "mine.json").startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("nothing is to be measured")

    monkeypatch.setattr("semistream_lab.cost.calibration.build_scratch_table", never)
    assert "cannot be written" in fail("lab", "calibrate", "--out", tmp_path / "nowhere" / "mine.json")


def test_the_place_of_the_profile_must_be_named() -> None:
    assert "--out" in fail("lab", "calibrate", code=2)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(2.5, "2.5 s"), (0.0155, "15.5 ms"), (95.31e-6, "95.3 µs"), (4e-9, "4 ns"), (5e-10, "0.5 ns")],
)
def test_durations_are_shown_in_a_unit_that_fits(seconds: float, shown: str) -> None:
    assert in_units(seconds) == shown
    assert in_units(seconds, plain=True) == shown.replace("µ", "u")
