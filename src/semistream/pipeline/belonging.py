"""Compares a checkpoint with the source, the master table and the sink that it meets, before Spark does.

Spark numbers batches by the checkpoint, and its table of files skips numbers that it has already: a checkpoint and a
sink that do not belong together lose rows without a word. See decision 023.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path

from semistream.master_table import MasterTable
from semistream.pipeline import places, written_folders
from semistream.pipeline.batch_numbers import ANEW, BatchNumbers, local_names
from semistream.pipeline.description import PipelineDescription, SourceDescription
from semistream.pipeline.failures import CheckpointMismatchError
from semistream.pipeline.remembered import Belongings
from semistream.pipeline.written_folders import Owner
from semistream.spark.sales_options import SalesOptions


class Belonging:
    """What a pipeline belongs to now, compared with what its checkpoint remembers; the checkpoint must be local.

    `accept_moved` takes names that have changed as other names of the same things. It does not help against numbers of
    batches that do not fit, nor against a folder that belongs to another checkpoint.
    """

    def __init__(
        self, description: PipelineDescription, remembered: Belongings | None, *, accept_moved: bool = False
    ) -> None:
        self._description = description
        self._then = remembered
        self._accept_moved = accept_moved
        self._checkpoint = Path(description.checkpoint)
        sink = description.sink.path
        self._sink = Path(sink) if sink is not None and places.is_local(sink) else None
        letters = description.source.dead_letters
        self._letters = Path(letters) if letters is not None and places.is_local(letters) else None
        self._numbers = numbers = BatchNumbers.read(description, local_names)
        self._begun = _any_batch(numbers.planned)
        self._anything_written = _any_batch(numbers.written) or _any_batch(numbers.lettered)
        self._owners = {folder: written_folders.owner_of(folder) for folder in (self._sink, self._letters) if folder}
        self.now = Belongings(
            id=self._id(),
            checkpoint=os.path.realpath(self._checkpoint),
            source=_source(description.source),
            master=MasterTable(description.dimension.table).address.real(),
            sink={"format": description.sink.format, "path": _real(sink)},
        )

    def check(self) -> None:
        """Raise CheckpointMismatchError if rows could be lost, written twice or joined with another table."""
        if not self._begun:
            self._numbers.check(self._description)
        elif self._then is not None:
            self._check_source(self._then.source)
            if not self._accept_moved:
                self._check_master(self._then)
                self._check_sink(self._then)
        for folder, owner in self._owners.items():
            self._check_owner(folder, owner)
        self._numbers.check(self._description)

    def own_folders(self) -> None:
        """Write down in the folders that the pipeline writes that they belong to this checkpoint."""
        mine = Owner(self.now.id, self.now.checkpoint)
        for folder, owner in self._owners.items():
            if (owner is None or owner.id != mine.id) and not written_folders.own(folder, mine, replace=bool(owner)):
                self._check_owner(folder, written_folders.owner_of(folder))

    def _id(self) -> str:
        if self._then is not None:
            return self._then.id
        owner = self._owners.get(self._sink) if self._sink else None
        # A checkpoint from before ids were remembered, or one that lost them, has the id of the sink that fits.
        return owner.id if owner is not None and self._begun else uuid.uuid4().hex

    def _check_source(self, then: Mapping[str, str]) -> None:
        now = self.now.source
        if now == then:
            return
        if "path" in now and now["format"] == then["format"]:
            self._check_source_path(now["path"], then["path"])
        elif not self._accept_moved:
            raise CheckpointMismatchError(
                f"[source] is {_text(now)}, but the checkpoint {self._checkpoint} belongs to {_text(then)}: put it "
                f"back, {ANEW}, or pass --accept-moved if it is the same stream."
            )

    def _check_source_path(self, now: str, then: str) -> None:
        read = f"[source] path is {now}, but the checkpoint {self._checkpoint} has read {then}"
        if not places.has_pattern(now):
            # Spark opens the files of the last batch once more, and fails unless they lie in the folder of now.
            raise CheckpointMismatchError(
                f"{read}, and Spark cannot continue in another folder: put it back (a symbolic link will do if the "
                f"files "
                f"were moved), or {ANEW}."
            )
        by_file_name = self._description.source.options.get("fileNameOnly", "").lower() == "true"
        if not (by_file_name or self._accept_moved):
            raise CheckpointMismatchError(
                f"{read}, and Spark would read moved files again: put it back, set fileNameOnly = true in [source] "
                f"options so that Spark recognizes files by name, or pass --accept-moved if all files are new."
            )

    def _check_master(self, then: Belongings) -> None:
        if not self._same_place(then.master, self.now.master, then):
            raise CheckpointMismatchError(
                f"[[dimension]] table is {self.now.master}, but the checkpoint {self._checkpoint} belongs to "
                f"{then.master}: put it back, or pass --accept-moved if this table takes its place."
            )

    def _check_sink(self, then: Belongings) -> None:
        now = self.now.sink
        known = self._owners.get(self._sink) if self._sink else None
        if not self._anything_written and self._numbers.finished == -1:
            return  # nothing has been written that could be missed
        if now["format"] == then.sink["format"] and (
            known is not None or self._same_place(then.sink["path"], now["path"], then)
        ):
            return
        raise CheckpointMismatchError(
            f"[sink] is {_text(now)}, but the checkpoint {self._checkpoint} belongs to {_text(then.sink)}: put it "
            f"back, {ANEW}, or pass --accept-moved if the table was moved."
        )

    def _check_owner(self, folder: Path, owner: Owner | None) -> None:
        if owner is None or owner.id == self.now.id:
            return
        empty = not (self._begun or self._anything_written)
        if empty and owner.checkpoint == self.now.checkpoint:
            return  # the checkpoint was removed before its first batch, and nobody else can have it: it is locked
        raise CheckpointMismatchError(
            f"{folder} belongs to the checkpoint that was at {owner.checkpoint}, not to {self._checkpoint}: use that "
            f"checkpoint, or give another folder; if it is empty and unused, remove it."
        )

    def _same_place(self, then: str, now: str, remembered: Belongings) -> bool:
        """Say whether a place has its old name, or was moved together with the checkpoint."""
        if then == now or not (then and now and places.is_local(then) and places.is_local(now)):
            return then == now
        moved = remembered.checkpoint != self.now.checkpoint
        return moved and os.path.relpath(then, remembered.checkpoint) == os.path.relpath(now, self.now.checkpoint)


def _any_batch(newest: int | None) -> bool:
    return newest is not None and newest >= 0


def _source(source: SourceDescription) -> dict[str, str]:
    """Return what tells a stream from others for Spark."""
    match source.format:
        case "sales":
            # Its offsets carry the same fingerprint, but only the running query looks at them.
            return {"format": "sales", "options": SalesOptions.parse(source.options, 1).fingerprint}
        case "socket":
            return {"format": "socket", "address": f"{source.options['host']}:{source.options['port']}"}
        case _:
            # As it is written, because Spark takes a file that it meets by another path for a new one.
            return {"format": source.format, "path": _normal(source.path or "")}


def _normal(place: str) -> str:
    return os.path.normpath(place) if places.is_local(place) else place.rstrip("/")


def _real(place: str | None) -> str:
    if place is None:
        return ""
    return os.path.realpath(place) if places.is_local(place) else place.rstrip("/")


def _text(what: Mapping[str, str]) -> str:
    return " ".join(value for value in what.values() if value)
