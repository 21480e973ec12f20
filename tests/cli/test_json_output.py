"""JSON files: a list of flat objects, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from semistream.cli.json_output import as_json, check_writable, write_json
from semistream.core.errors import InvalidSettingError


def test_numbers_that_json_does_not_know_are_null() -> None:
    assert json.loads(as_json([{"a": float("inf"), "b": float("nan"), "c": 1.5}])) == [{"a": None, "b": None, "c": 1.5}]


def test_no_rows_are_an_empty_list() -> None:
    assert json.loads(as_json([])) == []


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.json"
    write_json(file, [{"a": 1}])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InvalidSettingError, match="no space left on device"):
        write_json(file, [{"a": 2}])
    assert json.loads(file.read_text()) == [{"a": 1}]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "rows.json", tmp_path / "latest.json"
    file.write_text("old")
    link.symlink_to(file)
    check_writable(link)
    write_json(link, [{"a": 1}])
    assert link.is_symlink()
    assert json.loads(file.read_text()) == [{"a": 1}]


def test_a_device_is_written_to_and_not_replaced() -> None:
    check_writable(Path("/dev/null"))
    write_json(Path("/dev/null"), [{"a": 1}])
    assert Path("/dev/null").is_char_device()


def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "rows.json")
    assert list(tmp_path.iterdir()) == []
