"""A node can write its own folder and nothing else, and sees nothing of another node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from servers.left_out import left_out

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from separate_nodes import Node, why_not


@pytest.fixture
def nodes(tmp_path: Path) -> tuple[Node, Node]:
    if (reason := why_not()) is not None:
        left_out(reason)
    one, other = (Node.made(tmp_path / "a b" / name, "127.0.0.1") for name in ("one", "other"))
    (other.folder / "kept").write_text("of the other")
    return one, other


def on(node: Node, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        node.entered(list(command)), env=node.environment(os.environ), capture_output=True, text=True, check=False
    )


def test_a_process_writes_in_its_own_node(nodes: tuple[Node, Node]) -> None:
    done = on(nodes[0], "sh", "-c", 'pwd; echo here > "$HOME/file"; echo there > "$TMPDIR/file"')
    assert (done.returncode, done.stdout) == (0, f"{nodes[0].folder}\n"), done.stderr
    assert (nodes[0].folder / "home" / "file").read_text() == "here\n"


def test_a_process_sees_nothing_of_another_node_and_writes_nowhere_else(
    nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    one, other = nodes
    assert on(one, "ls", "-A", str(other.folder)).stdout == ""
    assert on(one, "cat", str(other.folder / "kept")).returncode != 0
    for place in (other.folder, tmp_path, Path("/tmp"), Path(__file__).parent):
        assert on(one, "touch", str(place / "file")).returncode != 0
        assert not (place / "file").exists()
    assert on(one, "touch", "/dev/shm/semistream-test").returncode == 0
    assert not Path("/dev/shm/semistream-test").exists(), "shared memory is its own too"
    assert (other.folder / "kept").read_text() == "of the other"


def test_the_exit_code_is_that_of_the_command(nodes: tuple[Node, Node]) -> None:
    assert on(nodes[0], "sh", "-c", "exit 7").returncode == 7
