"""A sample of the campaign of failing file operations."""

from __future__ import annotations

from pathlib import Path

import pytest
from file_operations import try_failures, try_interrupts, try_power_losses
from table_commands import COMMANDS
from watched_system import WAYS


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
