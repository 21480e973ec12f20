"""The bench: what it measures, shows and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from command_line import fail, flat_objects, run, succeed

from semistream.algorithms.registry import ALGORITHMS
from semistream.core.errors import BudgetTooSmallError
from semistream.engine.recipe import Recipe
from semistream.master_table import MasterTable
from semistream_lab.cli.bench_keys import DrawnKeys
from semistream_lab.measurement import Measurement, measure

PROMISED = {
    *("algorithm", "clock", "master_rows", "memory_bytes", "zipf", "tuples", "seconds", "service_rate", "cache_hits"),
    *("page_reads", "read_requests", "bytes_read", "peak_memory_bytes", "mean_wait_seconds", "max_wait_seconds"),
    *("seed", "ranks", "accounting", "profile", "waiting_slots", "warm_up_tuples", "iterations", "absent"),
    *("long_enough", "wall_seconds", "store"),
}
SMALL = ("--master-rows", "20000", "--memory", "1MB", "--tuples", "20000")


def measured(tmp_path: Path, *arguments: str | Path) -> list[dict[str, Any]]:
    """Run a bench and return the rows of its JSON file."""
    file = tmp_path / "bench.json"
    succeed("lab", "bench", *arguments, "--json", file)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    return flat_objects(file.read_text())


def test_rows_have_what_is_promised(tmp_path: Path) -> None:
    for row in measured(tmp_path, "--algorithm", "hybridjoin,cachejoin", *SMALL, "--seed", "5"):
        assert set(row) >= PROMISED
        assert row["clock"] == "wall"
        assert row["accounting"] == "real"
        assert row["profile"] is None
        assert row["store"] == "memory"
        assert row["master_rows"] == 20_000
        assert row["memory_bytes"] == 1_000_000
        assert row["seed"] == 5
        assert row["tuples"] >= 20_000
        assert row["service_rate"] == pytest.approx(row["tuples"] / row["seconds"])
        assert 0 < row["peak_memory_bytes"] <= 1_000_000
        assert row["cache_hits"] + row["read_hits"] + row["absent"] == row["tuples"]
        assert row["bytes_read"] == pytest.approx(row["page_reads"] * 68 * 120, rel=0.02)
        assert isinstance(row["long_enough"], bool)


def test_the_whole_family_runs_on_the_model_clock_and_counts_as_the_papers(tmp_path: Path) -> None:
    rows = measured(tmp_path, "--algorithm", "all", "--clock", "model", *SMALL)
    assert [row["algorithm"] for row in rows] == list(ALGORITHMS)
    assert {row["accounting"] for row in rows} == {"papers"}
    assert {row["profile"] for row in rows} == {"papers"}


def test_the_model_clock_gives_the_same_rows_again(tmp_path: Path) -> None:
    arguments = ("--algorithm", "cachejoin,ssij", "--clock", "model", "--ranks", "shuffled", *SMALL)
    first, second = (measured(tmp_path, *arguments) for _ in range(2))
    for row in [*first, *second]:
        del row["wall_seconds"]
    assert first == second


def test_profiles_differ_on_the_model_clock(tmp_path: Path) -> None:
    slow, fast = (
        measured(tmp_path, "--algorithm", "hybridjoin", "--clock", "model", "--profile", profile, *SMALL)[0]
        for profile in ("papers", "ssd")
    )
    assert fast["service_rate"] > 10 * slow["service_rate"]
    assert fast["page_reads"] == slow["page_reads"]


def test_a_profile_slows_the_store_down_on_the_wall_clock(tmp_path: Path) -> None:
    row = measured(tmp_path, "--algorithm", "hybridjoin", "--profile", "remote", *SMALL)[0]
    assert row["seconds"] >= row["read_requests"] * 0.005


def test_seconds_of_the_model_clock_end_a_run(tmp_path: Path) -> None:
    sizes = ("--master-rows", "20000", "--memory", "1MB")
    row = measured(tmp_path, "--algorithm", "meshjoin", "--clock", "model", "--seconds", "3", *sizes)[0]
    assert 3 <= row["seconds"] < 3.1


def test_seconds_of_the_wall_clock_end_a_run(tmp_path: Path) -> None:
    sizes = ("--master-rows", "20000", "--memory", "1MB")
    row = measured(tmp_path, "--algorithm", "hybridjoin", "--seconds", "0.2", *sizes)[0]
    assert 0.2 <= row["seconds"] < 5


def test_absent_keys_are_as_many_as_asked_for(tmp_path: Path) -> None:
    row = measured(tmp_path, "--algorithm", "hybridjoin", "--absent", "0.25", "--clock", "model", *SMALL)[0]
    assert row["absent"] / row["tuples"] == pytest.approx(0.25, abs=0.03)
    assert row["absent_share"] == 0.25


@pytest.mark.parametrize("absent", ["0", "0.2"])
def test_a_payload_is_joined_through_the_join_that_users_call(tmp_path: Path, absent: str) -> None:
    rows = measured(tmp_path, "--algorithm", "cachejoin,oracle", "--payload", "--absent", absent, *SMALL)
    for row in rows:
        assert row["payload"] is True
        assert row["tuples"] >= 20_000
        assert row["peak_memory_bytes"] <= 1_000_000
    assert rows[0]["read_requests"] > 0


def test_a_generated_file_is_removed_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    row = measured(tmp_path, "--algorithm", "hybridjoin", "--store", "file", *SMALL)[0]
    assert row["store"] == "file"
    assert row["absent"] == 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("extra", [(), ("--payload",), ("--clock", "model")])
def test_an_existing_table_is_asked_for_its_own_keys(tmp_path: Path, extra: tuple[str, ...]) -> None:
    keys = pa.array(np.arange(5_000) ** 2 - 7, pa.int32())
    table = pa.table({"id": keys, "name": keys.cast(pa.string())})
    MasterTable.build(table, tmp_path / "table", "id")
    options = ("--memory", "1MB", "--tuples", "20000", *extra)
    row = measured(tmp_path, "--algorithm", "hybridjoin", "--master", tmp_path / "table", *options)[0]
    assert row["absent"] == 0
    assert row["master_rows"] == 5_000
    assert row["store"] == "file"


def test_parameters_reach_the_algorithms_that_have_them(tmp_path: Path) -> None:
    arguments = ("--algorithm", "hybridjoin,meshjoin", "--clock", "model", *SMALL)
    plain, other = (measured(tmp_path, *arguments, *extra) for extra in ((), ("--parameter", "read_bytes=8192")))
    assert other[0]["bytes_read"] / other[0]["read_requests"] == pytest.approx(68 * 120, rel=0.02)
    assert other[0]["service_rate"] != plain[0]["service_rate"]
    assert other[1]["service_rate"] == plain[1]["service_rate"]


def test_the_table_says_what_is_compared_and_what_comes_out() -> None:
    shown = succeed("lab", "bench", "--algorithm", "meshjoin,cachejoin", "--clock", "model", *SMALL)
    assert "meshjoin and cachejoin compared" in shown
    assert "20,000 rows of 120 bytes" in shown
    assert "Tuples/s" in shown
    assert "times as many tuples per second as" in shown
    assert shown.index("\nmeshjoin ") < shown.index("\ncachejoin "), "in the order given"


def test_the_whole_family_is_sorted_by_service_rate() -> None:
    shown = succeed("lab", "bench", "--algorithm", "all", "--clock", "model", *SMALL)
    rates = [
        int(line.split()[1].replace(",", ""))
        for line in shown.splitlines()
        if line.split()[:1] and line.split()[0] in ALGORITHMS and line.split()[1].replace(",", "").isdigit()
    ]
    assert len(rates) == len(ALGORITHMS)
    assert rates == sorted(rates, reverse=True)


def test_a_short_run_is_noted_with_what_is_long_enough() -> None:
    arguments = ("--algorithm", "hybridjoin", "--clock", "model", "--master-rows", "20000", "--memory", "1MB")
    short = succeed("lab", "bench", *arguments, "--tuples", "100")
    assert "Short run of hybridjoin" in short
    enough = short.split("--tuples ")[1].split()[0]
    assert "Short run" not in succeed("lab", "bench", *arguments, "--tuples", enough)


def test_an_algorithm_of_the_family_that_cannot_run_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_small_for_ssij(recipe: Recipe, *arguments: Any, **options: Any) -> Measurement:
        if recipe.name == "ssij":
            raise BudgetTooSmallError("1.0 MB of memory is too little.")
        return measure(recipe, *arguments, **options)

    monkeypatch.setattr("semistream_lab.cli.bench_runs.measure", too_small_for_ssij)
    file = tmp_path / "bench.json"
    shown = succeed("lab", "bench", "--algorithm", "all", "--clock", "model", *SMALL, "--json", file)
    assert "ssij was left out: 1.0 MB of memory is too little." in shown
    assert [row["algorithm"] for row in flat_objects(file.read_text())] == [
        name for name in ALGORITHMS if name != "ssij"
    ]
    assert fail("lab", "bench", "--algorithm", "hybridjoin,ssij", *SMALL) == "1.0 MB of memory is too little."


def test_progress_and_notes_do_not_mix_with_results(tmp_path: Path) -> None:
    result = run("lab", "bench", "--algorithm", "hybridjoin", "--clock", "model", *SMALL, "--json", tmp_path / "a.json")
    assert "The results are in" in result.stderr
    assert "The results are in" not in result.stdout


def test_drawn_keys_start_again_at_their_end() -> None:
    keys = DrawnKeys(np.arange(5))
    assert [keys.draw(count).tolist() for count in (3, 4, 3)] == [[0, 1, 2], [3, 4, 0, 1], [2, 3, 4]]
    assert keys.draw(12).tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]


SIZES = "write a number with KB, MB, GB, KiB, MiB or GiB."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--algorithm", "quickjoin"], "There is no algorithm 'quickjoin': choose one of inlj, "),
        (["--algorithm", ","], "No algorithm is named: give --algorithm NAME[,NAME] or --algorithm all."),
        (["--memory", "lots"], f"'lots' is not a memory size: {SIZES}"),
        (["--memory", "0MB"], "A memory size must be positive, but '0MB' was given."),
        (["--memory", "100KB", "--algorithm", "cachejoin"], "100.0 KB of memory is too little for this master table"),
        (
            ["--memory", "1KB", "--master-rows", "2000"],
            "1.0 KB of memory is too little for pages of 8.2 KB: give at least 65.9 KB.",
        ),
        (["--tuples", "5", "--seconds", "5"], "--tuples and --seconds contradict each other: give one of them."),
        (["--seconds", "0"], "--seconds must be above 0, but 0 was given."),
        (
            ["--profile", "tape"],
            "There is no cost profile 'tape': choose one of papers, papers-connections, papers-slow-processor, "
            "papers-ssd, remote, remote-20ms, ssd, or",
        ),
        (
            ["--parameter", "size"],
            "'size' is not a parameter: write --parameter name=value with a number, ",
        ),
        (["--parameter", "decay=much"], "'decay=much' is not a parameter: write --parameter name=value"),
        (["--parameter", "size=1"], "None of the algorithms has a parameter 'size': they have absent, "),
        (
            ["--direct", "--store", "memory"],
            "--direct and --store memory contradict each other: leave one of them out.",
        ),
        (["--master", "t", "--store", "memory"], "--master and --store memory contradict each other:"),
        (["--master", "t", "--master-rows", "5"], "--master and --master-rows contradict each other:"),
        (["--master", "t", "--absent", "0.5"], "--absent needs a generated master table: leave out --master."),
        (["--master", "nowhere"], "There is no master table at nowhere: build one with `semistream master build`."),
        (["--payload", "--clock", "model"], "--payload and --clock model contradict each other:"),
        (["--payload", "--accounting", "papers"], "--payload and --accounting papers contradict each other:"),
        (["--json", "nowhere/a.json"], "The JSON file nowhere/a.json cannot be written (no such file or directory):"),
        (["--json", "."], "The JSON file cannot be written because . is a directory: name a file in it."),
    ],
)
def test_errors_are_one_sentence(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fail("lab", "bench", *arguments).startswith(said)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--master-rows", "many"],
        ["--master-rows", "0"],
        ["--tuples", "1.5"],
        ["--zipf", "steep"],
        ["--zipf", "-1"],
        ["--absent", "2"],
        ["--clock", "sun"],
        ["--accounting", "creative"],
        ["--ranks", "mixed"],
        ["--store", "cloud"],
        ["--seed", "x"],
        ["--row-bytes", "3"],
        ["--page-bytes", "3"],
    ],
)
def test_values_that_make_no_sense_are_a_misuse(arguments: list[str]) -> None:
    said = fail("lab", "bench", *arguments, code=2)
    assert said.startswith(f"Invalid value for '{arguments[0]}': ")
    assert said.endswith("; see `semistream lab bench --help`.")


def test_the_json_file_is_checked_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def must_not_run(*_: object) -> None:
        raise AssertionError("the run has begun")

    monkeypatch.setattr("semistream_lab.cli.bench_runs.run", must_not_run)
    assert "cannot be written" in fail("lab", "bench", "--json", tmp_path / "nowhere" / "a.json")


def test_a_table_with_another_key_is_refused(tmp_path: Path) -> None:
    MasterTable.build(pa.table({"name": ["a"]}), tmp_path / "names", "name")
    MasterTable.build(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "empty", "id")
    assert "is name string: give a table with a single integer key." in fail(
        "lab", "bench", "--master", tmp_path / "names"
    )
    assert "has no rows" in fail("lab", "bench", "--master", tmp_path / "empty")
