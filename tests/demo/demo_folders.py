"""Changes what a demo has written, as whoever tampers with it would."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from semistream.demo import DemoFolder
from semistream.pipeline import PipelineDescription, read_description


class CopiedDemo:
    """A copy of a demo's folder whose warehouse may be changed."""

    def __init__(self, original: DemoFolder, path: Path) -> None:
        shutil.copytree(original.path, path, ignore=shutil.ignore_patterns(".semistream.lock"))
        self.folder = DemoFolder(path)
        # The log names its files by absolute paths.
        for entry in self._entries():
            lines = entry.read_text().splitlines()
            self._write(entry, [line.replace(str(original.path), str(path)) for line in lines])

    @property
    def description(self) -> PipelineDescription:
        """What the pipeline's file in the copy says."""
        return read_description(self.folder.pipeline)

    def rows_of_a_file(self) -> int:
        """Return the rows of the file that the changes are made to."""
        return pq.read_table(self._file()).num_rows

    def leave_a_file_out(self) -> None:
        """Let the log of the warehouse forget a file."""
        self._change_log(lambda lines, at: lines[:at] + lines[at + 1 :])

    def forget_the_last_commit(self) -> None:
        """Let the checkpoint look as if the query was stopped before it could note that the last batch has ended."""
        commits = self.folder.checkpoint / "commits"
        last = max((entry for entry in commits.iterdir() if entry.name.isdigit()), key=lambda entry: int(entry.name))
        last.unlink()

    def damage_a_file(self) -> None:
        """Write rubbish into the middle of a file."""
        file = self._file()
        content = bytearray(file.read_bytes())
        content[8 : len(content) // 2] = b"\0" * (len(content) // 2 - 8)
        file.write_bytes(content)
        self._forget_checksum(file)

    def rewrite_a_file(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Change the rows of a file, and its size in the log."""
        file = self._file()
        pq.write_table(change(pq.read_table(file)), file, use_deprecated_int96_timestamps=True)  # as Spark does
        self._forget_checksum(file)
        size = file.stat().st_size
        self._change_log(
            lambda lines, at: [*lines[:at], json.dumps({**json.loads(lines[at]), "size": size}), *lines[at + 1 :]]
        )

    def _change_log(self, change: Callable[[list[str], int], list[str]]) -> None:
        entry, at = self._place()
        self._write(entry, change(entry.read_text().splitlines(), at))

    def _file(self) -> Path:
        entry, at = self._place()
        return Path(json.loads(entry.read_text().splitlines()[at])["path"].removeprefix("file://"))

    def _place(self) -> tuple[Path, int]:
        """Return where in the log the largest file stands."""
        places = [(entry, at) for entry in self._entries() for at in range(1, len(entry.read_text().splitlines()))]
        return max(places, key=lambda place: json.loads(place[0].read_text().splitlines()[place[1]])["size"])

    def _entries(self) -> list[Path]:
        log = self.folder.warehouse / "_spark_metadata"
        return sorted(entry for entry in log.iterdir() if not entry.name.startswith("."))

    def _write(self, entry: Path, lines: list[str]) -> None:
        entry.write_text("\n".join(lines))
        self._forget_checksum(entry)

    @staticmethod
    def _forget_checksum(file: Path) -> None:
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
