"""A sample of the campaign of failing file operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from file_operations import try_failures, try_interrupts, try_power_losses
from power_loss import RecordingSystem
from table_commands import COMMANDS
from watched_system import WAYS

import semistream as ss
from semistream.core.file_system import installed
from semistream.store.paged.versions import pins
from semistream.store.places.local_folder import LocalFolder


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_fails_anywhere_leaves_a_whole_table(tmp_path: Path, name: str) -> None:
    for place, way in enumerate(WAYS):
        (tmp_path / way).mkdir()
        try_failures(
            tmp_path / way, COMMANDS[name], way, lambda calls, place=place: range(1 + 2 * place, calls + 1, 29)
        )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_power_loss_leaves_a_whole_table(tmp_path: Path, name: str) -> None:
    try_power_losses(tmp_path, COMMANDS[name], 1, 1, 4)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupt_at_any_bytecode_leaves_a_whole_table(tmp_path: Path, name: str) -> None:
    try_interrupts(tmp_path, COMMANDS[name], 1, 4)


def test_a_pin_that_was_answered_survives_a_power_loss(tmp_path: Path) -> None:
    table = tmp_path / "tables" / "t"
    table.parent.mkdir()
    ss.MasterTable.build(pa.table({"id": [1, 2, 3]}), table, key="id")
    pins.pin(LocalFolder(table), "query", 0)
    recording = RecordingSystem(table.parent, lambda _: None)
    with installed(recording):
        pins.pin(LocalFolder(table), "query", 1)
    generator = np.random.default_rng(1)
    for moment in range(12):
        disk = tmp_path / f"moment-{moment}"
        recording.write_down(disk, generator)
        kept = {pin.batch for pin in pins.pins_of(LocalFolder(disk / "t"))}
        assert 1 in kept, "the batch could be replayed with another version"
