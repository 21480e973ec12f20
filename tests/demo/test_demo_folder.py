"""The folder of a demo: what may be replaced, and what must stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from semistream.core.errors import ConcurrentWriteError, InvalidSettingError
from semistream.demo import DemoFolder
from semistream.spark.spark_session import CheckpointInUseError, CheckpointLock


def _written(path: Path) -> DemoFolder:
    """Make a folder as a demo leaves it behind."""
    with DemoFolder.claimed(path) as folder:
        folder.clear()
        for directory in (folder.master, folder.warehouse, folder.checkpoint):
            directory.mkdir(exist_ok=True)
            (directory / "part").write_text("old")
        for file in (folder.products, folder.pipeline, folder.statistics, folder.page):
            file.write_text("old")
    return folder


def test_a_folder_is_made_with_its_parents_and_hidden_from_version_control(tmp_path: Path) -> None:
    with DemoFolder.claimed(tmp_path / "a" / "b") as folder:
        folder.clear()
    assert sorted(entry.name for entry in folder.path.iterdir()) == [".gitignore", ".semistream-demo"]
    assert (folder.path / ".gitignore").read_text() == "*\n"


def test_what_an_earlier_demo_wrote_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    before = _written(tmp_path / "out")
    (before.path / "notes.txt").write_text("mine")
    with DemoFolder.claimed(before.path) as folder:
        folder.clear()
    left = {entry.name for entry in before.path.iterdir()}
    assert left == {".gitignore", ".semistream-demo", "notes.txt"}
    assert (before.path / "notes.txt").read_text() == "mine"


def test_a_link_in_the_place_of_an_own_folder_is_removed_and_not_followed(tmp_path: Path) -> None:
    before = _written(tmp_path / "out")
    elsewhere = tmp_path / "elsewhere"
    before.warehouse.rename(elsewhere)
    before.warehouse.symlink_to(elsewhere)
    with DemoFolder.claimed(before.path) as folder:
        folder.clear()
    assert (elsewhere / "part").read_text() == "old"
    assert not before.warehouse.exists()


@pytest.mark.parametrize("name", ["warehouse", "report.html", "other"])
def test_a_folder_with_foreign_files_is_refused_and_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InvalidSettingError, match="the demo did not write"), DemoFolder.claimed(tmp_path):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_mark_that_is_a_link_or_says_something_else_does_not_count(tmp_path: Path) -> None:
    made = _written(tmp_path / "made")
    for name in ("linked", "said"):
        (tmp_path / name).mkdir()
    (tmp_path / "linked" / ".semistream-demo").symlink_to(made.path / ".semistream-demo")
    (tmp_path / "said" / ".semistream-demo").write_text("something else")
    for name in ("linked", "said"):
        with pytest.raises(InvalidSettingError, match="the demo did not write"), DemoFolder.claimed(tmp_path / name):
            pass


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidSettingError, match="cannot be written"), DemoFolder.claimed(tmp_path / "file"):
        pass
    assert (tmp_path / "file").read_text() == "mine"


def test_two_demos_do_not_share_a_folder(tmp_path: Path) -> None:
    first, second = (DemoFolder.claimed(tmp_path / "out") for _ in range(2))
    with first, pytest.raises(ConcurrentWriteError, match="Another demo"), second:
        pass
    with DemoFolder.claimed(tmp_path / "out"):
        pass


def test_a_demo_whose_pipeline_still_runs_is_not_replaced(tmp_path: Path) -> None:
    before = _written(tmp_path / "out")
    running = CheckpointLock(before.checkpoint)
    with running, DemoFolder.claimed(before.path) as folder, pytest.raises(CheckpointInUseError):
        folder.clear()
    assert (before.warehouse / "part").read_text() == "old"
