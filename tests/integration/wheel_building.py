"""Builds the wheel from a clean copy of the sources, and environments to try it in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
_NOT_SOURCE = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.nbi", "*.nbc")


def build_wheel(folder: Path) -> Path:
    """Build the wheel with the build backend, without an index; nothing is written into the repository."""
    copy = folder / "copy"
    (copy / "docs").mkdir(parents=True)
    for name in ("pyproject.toml", "LICENSE", "docs/package_index.md"):
        shutil.copy(REPOSITORY / name, copy / name)
    shutil.copytree(REPOSITORY / "src", copy / "src", ignore=_NOT_SOURCE)
    done = subprocess.run([sys.executable, "-c", _BUILD, str(folder)], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wheels = list(folder.glob("*.whl"))
    assert len(wheels) == 1
    return wheels[0]


@dataclass(frozen=True)
class Environment:
    """A virtual environment of its own, which knows nothing of the one that runs the tests."""

    folder: Path

    @classmethod
    def with_wheel(cls, folder: Path, wheel: Path, extras: str = "") -> Environment:
        """Make an environment and install the wheel into it, with its dependencies from the package index."""
        return cls.with_packages(folder, f"{wheel}{extras}")

    @classmethod
    def with_packages(cls, folder: Path, *requirements: str, constrained: bool = True) -> Environment:
        """Make an environment and install packages into it."""
        venv.create(folder, with_pip=True)
        environment = cls(folder)
        environment.install(*requirements, constrained=constrained)
        return environment

    def install(self, *requirements: str, constrained: bool = True) -> None:
        """Install packages: in the versions that are tested, or as users without our constraints get them."""
        constraints = ("-c", str(REPOSITORY / "constraints.txt")) if constrained else ()
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints)
        done = self.run("python", *pip, *requirements)
        assert done.returncode == 0, done.stderr

    def run(self, command: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command as in the activated environment, without what the tests' own environment has set."""
        binaries = self.folder / "bin"
        return subprocess.run(
            [str(binaries / command), *arguments],
            cwd=cwd or self.folder,
            env={**_environment(), "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )

    def installed_bytes(self) -> int:
        """Return what `pip install` has brought, without pip itself."""
        packages = next((self.folder / "lib").glob("python*/site-packages"))
        return sum(
            path.lstat().st_size
            for path in packages.rglob("*")
            if path.is_file() and path.relative_to(packages).parts[0].split("-")[0] not in ("pip", "setuptools")
        )


def _environment() -> dict[str, str]:
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    return {name: value for name, value in os.environ.items() if name not in hidden}
