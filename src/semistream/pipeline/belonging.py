"""Compares a checkpoint with the sources, the master tables and the sink that it meets, before Spark does.

Spark numbers batches by the checkpoint, and its table of files skips numbers that it has already: a checkpoint and a
sink that do not belong together lose rows without a word. See decision 023.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from semistream.master_table import MasterTable
from semistream.pipeline import places, written_folders
from semistream.pipeline.batch_numbers import ANEW, BatchNumbers, local_names, planned_sources
from semistream.pipeline.description import PipelineDescription, SinkDescription, SourceDescription
from semistream.pipeline.failures import CheckpointMismatchError
from semistream.pipeline.remembered import Belongings
from semistream.pipeline.sources.kinds import kind_of
from semistream.pipeline.written_folders import Owner
from semistream.store.database.address import parse_address

_FILES = ("json", "csv", "parquet")
"""Formats whose files Spark knows by their paths."""


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
        sink = description.sink.file_log
        self._sink = Path(sink) if sink is not None and places.is_local(sink) else None
        places_of_letters = [source.dead_letters for source in description.sources]
        letters = [Path(place) for place in places_of_letters if place is not None and places.is_local(place)]
        self._numbers = numbers = BatchNumbers.read(description, local_names)
        self._begun = _any_batch(numbers.planned)
        self._anything_written = any(map(_any_batch, (numbers.written, *numbers.lettered)))
        self._owners = {folder: written_folders.owner_of(folder) for folder in (self._sink, *letters) if folder}
        self.now = Belongings(
            id=self._id(),
            checkpoint=os.path.realpath(self._checkpoint),
            sources=[kind_of(source.format).identity(source) for source in description.sources],
            masters=[MasterTable(dimension.table).address.real() for dimension in description.dimensions],
            sink=_sink(description.sink),
        )

    @property
    def has_begun(self) -> bool:
        """Whether Spark has fixed what the first batch reads."""
        return self._begun

    def check(self) -> None:
        """Raise CheckpointMismatchError if rows could be lost, written twice or joined with another table."""
        if not self._begun:
            self._numbers.check(self._description)
        elif self._then is not None:
            self._check_sources(self._then.sources)
            if not self._accept_moved:
                self._check_masters(self._then)
            self._check_rooms(len(self._then.sources))
            if not self._accept_moved:
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

    def _check_sources(self, then: Sequence[Mapping[str, str]]) -> None:
        if len(then) != len(self.now.sources):
            raise CheckpointMismatchError(
                f"The pipeline has {_count(self.now.sources, 'source')}, but the checkpoint {self._checkpoint} belongs "
                f"to {_count(then, 'source')}, and Spark cannot add or drop one: put them back, or {ANEW}."
            )
        for source, now, before in zip(self._description.sources, self.now.sources, then, strict=True):
            self._check_source(source, now, before)

    def _check_source(self, source: SourceDescription, now: Mapping[str, str], then: Mapping[str, str]) -> None:
        if now == then:
            return
        if source.format in _FILES and now["format"] == then["format"]:
            self._check_source_path(source, now["path"], then["path"])
        elif not self._accept_moved:
            raise CheckpointMismatchError(
                f"{source.where} is {_text(now)}, but the checkpoint {self._checkpoint} belongs to {_text(then)}: put "
                f"it back, {ANEW}, or pass --accept-moved if it is the same stream."
            )

    def _check_source_path(self, source: SourceDescription, now: str, then: str) -> None:
        read = f"{source.where} path is {now}, but the checkpoint {self._checkpoint} has read {then}"
        if not places.has_pattern(now):
            # Spark opens the files of the last batch once more, and fails unless they lie in the folder of now.
            raise CheckpointMismatchError(
                f"{read}, and Spark cannot continue in another folder: put it back (a symbolic link will do if the "
                f"files "
                f"were moved), or {ANEW}."
            )
        by_file_name = source.options.get("fileNameOnly", "").lower() == "true"
        if not (by_file_name or self._accept_moved):
            raise CheckpointMismatchError(
                f"{read}, and Spark would read moved files again: put it back, set fileNameOnly = true in its "
                f"options so that Spark recognizes files by name, or pass --accept-moved if all files are new."
            )

    def _check_rooms(self, sources: int) -> None:
        planned = planned_sources(self._checkpoint, self._numbers.planned or 0)
        now = self._description.rooms
        if planned is not None and planned != sources + now:
            raise CheckpointMismatchError(
                f"Rows would wait in {now} rooms, but the checkpoint {self._checkpoint} has {planned - sources}, and "
                f"Spark cannot add or drop one: set max_wait in [enrich] and unmatched = 'park' as they were (max_wait "
                f"= '0 seconds' keeps a room empty), or {ANEW}."
            )

    def _check_masters(self, then: Belongings) -> None:
        if len(then.masters) != len(self.now.masters):
            raise CheckpointMismatchError(
                f"The pipeline has {_count(self.now.masters, 'dimension')}, but the checkpoint {self._checkpoint} "
                f"belongs to {_count(then.masters, 'dimension')}: put them back, {ANEW}, or pass --accept-moved if "
                f"rows may look different from now on."
            )
        for dimension, now, before in zip(self._description.dimensions, self.now.masters, then.masters, strict=True):
            if not self._same_place(before, now, then):
                raise CheckpointMismatchError(
                    f"{dimension.where} table is {now}, but the checkpoint {self._checkpoint} belongs to "
                    f"{before}: put it back, or pass --accept-moved if this table takes its place."
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


def _sink(sink: SinkDescription) -> dict[str, str]:
    """Return what tells a sink from others; no options, which may hold secrets."""
    if sink.table is not None:
        address = parse_address(sink.table, needs_key=False)
        return {"format": sink.format, "path": f"{address.server}/{address.table_name}"}
    if sink.topic is not None:
        return {"format": sink.format, "path": f"kafka:///{sink.topic.name}"}
    return {"format": sink.format, "path": _real(sink.path)}


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _real(place: str | None) -> str:
    if place is None:
        return ""
    return os.path.realpath(place) if places.is_local(place) else place.rstrip("/")


def _text(what: Mapping[str, str]) -> str:
    return " ".join(value for value in what.values() if value)
