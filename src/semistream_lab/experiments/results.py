"""The folder of a lab run: one file a finished point, and what they have in common."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from semistream.core.errors import InvalidSettingError
from semistream.core.flat_json import Scalar, as_json
from semistream_lab.experiments.point import Point, Row, digest_of

_FORMAT = 1
_ABOUT = "lab.json"
_LOCK = ".lock"
_FAILURES = "failures.json"


@dataclass(frozen=True)
class LabSettings:
    """What all points of a folder have in common."""

    scale: float = 1.0
    """The size of tables and memory beside the papers'."""
    clock: str = "model"


@dataclass
class FinishedPoints:
    """The results in a folder, by the digests of their points."""

    rows: dict[str, Row] = field(default_factory=dict)
    seeds: set[int] = field(default_factory=set)
    damaged: list[Path] = field(default_factory=list)
    """Files that cannot be used: half-written, changed, or of another point than their name says."""


@dataclass(frozen=True)
class ResultsFolder:
    """Where a lab run leaves its results; safe against a crash at any moment."""

    path: Path
    settings: LabSettings

    @classmethod
    def make(cls, path: Path, settings: LabSettings) -> ResultsFolder:
        """Make a folder, or go on with one of the same settings."""
        if (path / _ABOUT).exists():
            folder = cls.open(path)
            if folder.settings != settings:
                raise InvalidSettingError(
                    f"{path} has results of {_text(folder.settings)}, not of {_text(settings)}: name another folder."
                )
        folder = cls(path, settings)
        try:
            folder.points.mkdir(parents=True, exist_ok=True)
            if not (path / _ABOUT).exists():
                folder._write_about([])
            (path / _LOCK).touch()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise InvalidSettingError(
                f"Results cannot be written into {path} ({why}): name a writable folder."
            ) from None
        return folder

    @classmethod
    def open(cls, path: Path) -> ResultsFolder:
        """Open a folder that a run has made."""
        try:
            about = json.loads((path / _ABOUT).read_text(encoding="utf-8"))
            version, settings = about["format"], LabSettings(float(about["scale"]), str(about["clock"]))
        except FileNotFoundError:
            raise InvalidSettingError(
                f"{path} is not the folder of a lab run: name one, or create one with `semistream lab run all --out "
                f"{path}`."
            ) from None
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise InvalidSettingError(
                f"{path / _ABOUT} cannot be read ({error}): name another folder, or remove this file and run again "
                "with the same settings."
            ) from None
        if version != _FORMAT:
            raise InvalidSettingError(
                f"{path} has format {version}, but this version reads format {_FORMAT}: name another folder."
            )
        return cls(path, settings)

    def experiments(self) -> list[str]:
        """Return the experiments that runs were asked for."""
        about = json.loads((self.path / _ABOUT).read_text(encoding="utf-8"))
        return [str(name) for name in about.get("experiments", [])]

    def remember(self, experiments: Iterable[str]) -> None:
        """Note that a run was asked for some experiments."""
        self._write_about(dict.fromkeys([*self.experiments(), *experiments]))

    def _write_about(self, experiments: Iterable[str]) -> None:
        about = {"format": _FORMAT, **asdict(self.settings), "experiments": list(experiments)}
        self.write(_ABOUT, json.dumps(about, indent=2) + "\n")

    @property
    def points(self) -> Path:
        """Where the finished points are."""
        return self.path / "points"

    @property
    def tables(self) -> Path:
        """Where master tables are for runs on the wall clock."""
        return self.path / "tables"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second run out of the folder while the block runs."""
        descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidSettingError(
                    f"Another run is using {self.path}: wait for it to finish, or name another folder."
                ) from None
            yield
        finally:
            os.close(descriptor)

    def save(self, point: Point, row: Row) -> None:
        """Write the result of a point: a reader sees all of it or nothing."""
        text = json.dumps({"point": point.to_json(), "row": dict(row)}, indent=1)
        _write_whole(self.points / f"{point.digest}.json", text + "\n")

    def load(self, *, set_aside: bool = False) -> FinishedPoints:
        """Return all results; damaged files may be set aside, so that their points are run again."""
        finished = FinishedPoints()
        for file in sorted(self.points.glob("*.json")):
            try:
                content = json.loads(file.read_text(encoding="utf-8"))
                point, row = content["point"], content["row"]
                if digest_of(point) != file.stem or not isinstance(row, dict):
                    raise ValueError("it is of another point")
                finished.seeds.add(int(point["seed"]))
            except (ValueError, KeyError, TypeError):
                if set_aside:
                    file.replace(file.with_suffix(".damaged"))
                finished.damaged.append(file)
                continue
            finished.rows[file.stem] = row
        return finished

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file beside the points: a reader sees all of it or what was there before."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, content)
        return path

    def write_rows(self, name: str, rows: Iterable[Mapping[str, Scalar]]) -> Path:
        """Write a list of flat objects."""
        return self.write(name, as_json(rows))

    def write_failures(self, rows: Iterable[Mapping[str, Scalar]]) -> None:
        """Remember which points failed in the last run."""
        self.write_rows(_FAILURES, rows)

    def failures(self) -> list[Mapping[str, Scalar]]:
        """Return which points failed in the last run."""
        try:
            content = json.loads((self.path / _FAILURES).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []


def _text(settings: LabSettings) -> str:
    return f"scale {settings.scale:g} on the {settings.clock} clock"


def _write_whole(path: Path, content: str | bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
