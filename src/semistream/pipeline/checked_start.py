"""What can be checked about the start of a pipeline without Spark, which takes seconds to come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.master_table import MasterTable
from semistream.pipeline import places
from semistream.pipeline.belonging import Belonging
from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.remembered import Remembered, read_remembered, write_remembered
from semistream.pipeline.remembered_columns import RememberedColumns
from semistream.spark.spark_session import CheckpointLock


class CheckedStart:
    """A pipeline whose checkpoint belongs to its source, master table and sink; making one raises if it does not.

    Nothing is remembered where the checkpoint is not on this machine.
    """

    def __init__(self, description: PipelineDescription, *, accept_moved: bool = False) -> None:
        self._description = description
        local = places.is_local(description.checkpoint)
        self._checkpoint = Path(description.checkpoint) if local else None
        self._remembered = read_remembered(self._checkpoint) if self._checkpoint is not None else None
        with naming("[[dimension]]"), MasterTable(description.dimension.table).open() as store:
            self._schema, self._key = store.schema, tuple(store.key)
        self._belonging: Belonging | None = None
        if self._checkpoint is not None:
            then = self._remembered.belongings if self._remembered is not None else None
            self._belonging = Belonging(description, then, accept_moved=accept_moved)
            self._belonging.check()

    @property
    def has_compared_batches(self) -> bool:
        """Whether the numbers of batches were compared; to read those of other machines takes Spark."""
        written = (self._description.sink.path, self._description.source.dead_letters)
        return self._checkpoint is not None and all(places.is_local(place) for place in written if place is not None)

    def columns(self) -> RememberedColumns:
        """Return the master's columns to use; raises SchemaDriftError if they are no longer there."""
        return RememberedColumns(self._description.dimension, self._schema, self._key, self._remembered)

    def remember(self, columns: RememberedColumns) -> None:
        """Write down what the checkpoint belongs to, there and in the folders that the pipeline writes.

        Must be called under the lock of the checkpoint.
        """
        if self._checkpoint is None or self._belonging is None:
            return
        now = Remembered(columns.fingerprint, columns.used, self._belonging.now)
        if now != self._remembered:
            write_remembered(self._checkpoint, now)
        self._belonging.own_folders()


def check_source(description: PipelineDescription) -> None:
    """Raise InvalidSettingError if the source is a folder of this machine that is not there, which Spark refuses."""
    path = description.source.path
    if path is None or not places.is_local(path) or places.has_pattern(path) or Path(path).exists():
        return
    raise InvalidSettingError(f"[source] path is {path}, which does not exist: create the folder, or correct the path.")


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
        raise type(error)(f"{table} does not fit: {error}") from None
