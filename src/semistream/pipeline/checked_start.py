"""What can be checked about the start of a pipeline without Spark, which takes seconds to come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from semistream.core.errors import SemistreamError
from semistream.master_table import MasterTable
from semistream.pipeline import places
from semistream.pipeline.belonging import Belonging
from semistream.pipeline.description import DimensionDescription, PipelineDescription
from semistream.pipeline.failures import made_anew
from semistream.pipeline.named_columns import MasterNames, NamedColumns
from semistream.pipeline.remembered import Remembered, read_remembered, write_remembered
from semistream.pipeline.remembered_columns import RememberedColumns
from semistream.pipeline.sources.kinds import kind_of
from semistream.spark.spark_session import CheckpointLock


class CheckedStart:
    """A pipeline whose checkpoint belongs to its sources, master tables and sink; making one raises if it does not.

    Nothing is remembered where the checkpoint is not on this machine.
    """

    def __init__(self, description: PipelineDescription, *, accept_moved: bool = False) -> None:
        self._description = description
        local = places.is_local(description.checkpoint)
        self._checkpoint = Path(description.checkpoint) if local else None
        self._remembered = read_remembered(self._checkpoint) if self._checkpoint is not None else None
        self._masters: list[MasterNames] = []
        self._columns = [self._columns_of(dimension, place) for place, dimension in enumerate(description.dimensions)]
        NamedColumns(description).check(self._masters)
        self._belonging: Belonging | None = None
        if self._checkpoint is not None:
            then = self._remembered.belongings if self._remembered is not None else None
            self._belonging = Belonging(description, then, accept_moved=accept_moved)
            self._belonging.check()

    def _columns_of(self, dimension: DimensionDescription, place: int) -> RememberedColumns:
        with naming(dimension.where), MasterTable(dimension.table).open() as store:
            names = MasterNames(store.schema, tuple(store.key))
            columns = RememberedColumns(dimension, names.schema, names.key, self._remembered, place)
            self._masters.append(replace(names, columns=columns.columns))
            return columns

    @property
    def has_compared_batches(self) -> bool:
        """Whether the numbers of batches were compared; to read those of other machines takes Spark."""
        letters = (source.dead_letters for source in self._description.sources)
        written = (self._description.sink.file_log, *letters)
        return self._checkpoint is not None and all(places.is_local(place) for place in written if place is not None)

    @property
    def columns(self) -> list[RememberedColumns]:
        """For each dimension the master's columns to use."""
        return self._columns

    def source_columns(self, place: int) -> Mapping[str, str] | None:
        """Return the columns that the source at a place had at the first start, unless the file says them."""
        then = self._remembered.source_columns if self._remembered is not None else []
        return then[place] if place < len(then) else None

    def check_stream(self, place: int, ids: Mapping[str, str]) -> None:
        """Raise ExpiredOffsetsError if what the checkpoint has read was removed, and another has its name now."""
        then = self._remembered.streams if self._remembered is not None else []
        if place >= len(then) or self._belonging is None or not self._belonging.has_begun:
            return
        anew = [name for name, stream_id in ids.items() if then[place].get(name, stream_id) != stream_id]
        if anew:
            raise made_anew(", ".join(anew), self._description.sources[place].where.rstrip(":"))

    def remember(
        self, source_columns: list[Mapping[str, str] | None], streams: Sequence[Mapping[str, str]] = ()
    ) -> None:
        """Write down what the checkpoint belongs to, there and in the folders that the pipeline writes.

        Must be called under the lock of the checkpoint.
        """
        if self._checkpoint is None or self._belonging is None:
            return
        joins: list[Mapping[str, Any]] = [columns.fingerprint for columns in self._columns]
        used = [columns.used for columns in self._columns]
        now = Remembered(joins, used, source_columns, self._belonging.now, list(streams))
        if now != self._remembered:
            write_remembered(self._checkpoint, now)
        self._belonging.own_folders()


def check_sources(description: PipelineDescription) -> None:
    """Raise InvalidSettingError if a source is not there, as far as that can be told without Spark."""
    for source in description.sources:
        kind_of(source.format).check(source)


def check_unused(description: PipelineDescription) -> None:
    """Raise CheckpointInUseError if another query uses the checkpoint at this moment."""
    if places.is_local(description.checkpoint) and Path(description.checkpoint).is_dir():
        with CheckpointLock(description.checkpoint):
            pass


@contextmanager
def naming(table: str) -> Iterator[None]:
    """Put the name of the table of the file before errors about what it says."""
    try:
        yield
    except SemistreamError as error:
        raise type(error)(f"{table.rstrip(':')} does not fit: {error}") from None
