"""What `import semistream as ss` offers."""

from __future__ import annotations

import inspect
import subprocess
import sys

import semistream as ss


def test_dir_lists_every_public_name_before_it_is_loaded() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", "import semistream as ss; print(*dir(ss))"], capture_output=True, text=True, check=True
    )
    assert set(ss.__all__) <= set(shown.stdout.split())
    for name in ss.__all__:
        assert inspect.getdoc(getattr(ss, name)), name
