"""Hot loops are compiled also where neither the installation nor the home of the user can be written."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from semistream.core.compile import _private_folder

LOOP = """
from semistream.core.compile import kernel

@kernel
def doubled(number):
    return 2 * number

print(doubled(21))
"""


def test_a_loop_of_a_read_only_installation_is_kept_in_a_private_temporary_folder(tmp_path: Path) -> None:
    installation, temporary, home = tmp_path / "installation", tmp_path / "temporary", tmp_path / "home"
    installation.mkdir()
    temporary.mkdir()
    # Files in the place of folders keep out even a user who may write everywhere.
    (installation / "__pycache__").touch()
    home.touch()
    (installation / "loop.py").write_text(LOOP)
    kept_out = {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in kept_out}
    environment |= {"HOME": str(home), "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, str(installation / "loop.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == "42\n", done.stderr
    (folder,) = temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.rglob("*.nbi"))


def test_the_private_folder_is_the_same_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert _private_folder() == _private_folder()


@pytest.mark.parametrize("trap", ["open to all", "a link", "a file"])
def test_a_folder_that_others_can_write_is_never_taken(
    trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    expected = tmp_path / f"semistream-kernels-{os.getuid()}"
    if trap == "open to all":
        expected.mkdir()
        expected.chmod(0o777)
    elif trap == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        expected.symlink_to(tmp_path / "elsewhere")
    else:
        expected.touch()
    folder = _private_folder()
    assert folder != expected
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
