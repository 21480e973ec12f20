"""Keeps the mirror of a running pipeline in step with its source, beside the micro-batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from semistream.core.durations import format_seconds
from semistream.core.errors import InvalidSettingError, MasterNotFoundError, SemistreamError
from semistream.master_table import MasterTable
from semistream.mirrors.refreshing import build_mirror, mirrored_source
from semistream.mirrors.source_description import as_description
from semistream.pipeline.description import MirrorDescription, PipelineDescription
from semistream.spark.batch_progress import MirrorNumbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REFRESHES_PER_VACUUM = 20
_SECONDS_TO_STOP = 5.0


class StaleMirrorError(SemistreamError):
    """A mirror has become older than its pipeline allows."""


def ensure_mirror(table: MasterTable, description: MirrorDescription, spark: SparkSession | None) -> None:
    """Build the mirror that a pipeline names unless it is there; one of another source is an error."""
    if description.source is None:
        if description.refresh_seconds is not None:
            mirrored_source(table.address)
        return
    if is_missing(table):
        if description.key is None:
            raise InvalidSettingError(
                "[[dimension]] names a source that has no mirror yet: add key, so that it can be built."
            )
        build_mirror(description.source, table.address, description.key, spark=spark)
        return
    mirrored = table.info()["mirror"]
    if mirrored is None or mirrored["source"] != as_description(description.source):
        raise InvalidSettingError(
            f"[[dimension]] from is not the source that {table.address.text} was built from: put it back, or build "
            f"the mirror again with `semistream master build {table.address.text} --from ADDRESS --key NAME`."
        )


def awaits_mirror(description: PipelineDescription) -> bool:
    """Say whether a start of the pipeline builds a master table."""
    return any(
        dimension.mirror is not None
        and dimension.mirror.source is not None
        and is_missing(MasterTable(dimension.table))
        for dimension in description.dimensions
    )


def is_missing(table: MasterTable) -> bool:
    """Say whether the table has yet to be built."""
    try:
        table.version  # noqa: B018 - asked for, to see whether there is one
    except MasterNotFoundError:
        return True
    return False


class MirrorKeeper:
    """Refreshes a mirror in a thread of its own, so that no query waits for it, and counts what happened.

    A refresh that fails is counted and tried again at the next time; `check` raises StaleMirrorError once the mirror
    is older than the pipeline allows. Until a refresh has succeeded here, its age is that of its newest version.
    """

    def __init__(self, table: MasterTable, description: MirrorDescription, spark: SparkSession | None = None) -> None:
        self._table = table
        self._every = description.refresh_seconds or 0.0
        self._stale_after = description.stale_after_seconds
        self._keep_for = description.keep_for_seconds
        self._spark = spark
        about = table.info()
        created = datetime.fromisoformat(about["created"])
        now = time.monotonic()
        self._confirmed = now - max(0.0, (datetime.now(UTC) - created).total_seconds())
        self._started = now
        self._lock = threading.Lock()
        self._numbers = MirrorNumbers(version=about["version"])
        self._attempts = 0
        self._changes = 0
        self.last_error: Exception | None = None
        """Why the last refresh failed, if it did."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="semistream-mirror", daemon=True)

    def start(self) -> None:
        """Begin with a refresh at once."""
        self._thread.start()

    def stop(self) -> None:
        """End; a refresh that is under way may be cut off, which the next one makes up for."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_SECONDS_TO_STOP)

    @property
    def address(self) -> str:
        """Where the mirror is."""
        return self._table.address.text

    def numbers(self) -> MirrorNumbers:
        """Return what has been counted, and the age of now."""
        with self._lock:
            return replace(self._numbers, age_seconds=time.monotonic() - self._confirmed)

    def check(self) -> None:
        """Raise StaleMirrorError if the mirror is too old, and a refresh has had its chance."""
        if self._stale_after is None:
            return
        now = time.monotonic()
        with self._lock:
            age, attempts, error = now - self._confirmed, self._attempts, self.last_error
        had_a_chance = attempts > 0 or now - self._started > self._stale_after
        if age > self._stale_after and had_a_chance:
            why = f" ({error})" if error is not None else ""
            raise StaleMirrorError(
                f"The mirror {self._table.address.text} has been out of step with its source for "
                f"{format_seconds(age)}{why}: check the source, or leave out stale_after to go on with its rows."
            )

    def refresh(self) -> None:
        """Refresh once, and count it."""
        began = time.monotonic()
        try:
            done = self._table.refresh(spark=self._spark)
        except Exception as error:  # whatever it is, the query goes on with the version before
            with self._lock:
                self._attempts += 1
                self.last_error = error
                self._numbers = replace(self._numbers, failures=self._numbers.failures + 1)
            return
        with self._lock:
            counted = self._numbers
            self._attempts += 1
            self.last_error = None
            self._confirmed = began
            self._numbers = replace(
                counted,
                version=done.version,
                refreshes=counted.refreshes + 1,
                rows_upserted=counted.rows_upserted + done.rows_upserted,
                rows_deleted=counted.rows_deleted + done.rows_deleted,
            )
        self._changes += done.changed
        if done.changed and self._changes % _REFRESHES_PER_VACUUM == 0:
            # Another writer may be at work, or a version be damaged: nothing that a refresh has to stop for.
            with suppress(SemistreamError, OSError):
                self._table.vacuum(keep_for=self._keep_for)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.refresh()
            self._stop.wait(self._every)


class MirrorKeepers:
    """The keepers of all mirrors that a pipeline refreshes; there may be none."""

    def __init__(self, keepers: Sequence[MirrorKeeper]) -> None:
        self._keepers = tuple(keepers)

    @classmethod
    def of(cls, description: PipelineDescription, spark: SparkSession) -> MirrorKeepers:
        """Make them; a mirror that is not there is built, and a run over what is there now begins with a refresh."""
        keepers = []
        for dimension in description.dimensions:
            mirror, table = dimension.mirror, MasterTable(dimension.table)
            if mirror is None:
                continue
            ensure_mirror(table, mirror, spark)
            if mirror.refresh_seconds is None:
                continue
            keeper = MirrorKeeper(table, mirror, spark)
            if description.trigger.available_now:
                keeper.refresh()
                keeper.check()
            keepers.append(keeper)
        return cls(keepers)

    def by_table(self) -> dict[str, MirrorNumbers]:
        """Return what each has counted, by the address of its table."""
        return {keeper.address: keeper.numbers() for keeper in self._keepers}

    def numbers(self) -> MirrorNumbers | None:
        """Return what all have counted together, with version and age of the mirror that is out of step longest."""
        if not self._keepers:
            return None
        all_numbers = [keeper.numbers() for keeper in self._keepers]
        oldest = max(all_numbers, key=lambda numbers: numbers.age_seconds)
        return replace(
            oldest,
            refreshes=sum(numbers.refreshes for numbers in all_numbers),
            failures=sum(numbers.failures for numbers in all_numbers),
            rows_upserted=sum(numbers.rows_upserted for numbers in all_numbers),
            rows_deleted=sum(numbers.rows_deleted for numbers in all_numbers),
        )

    def check(self) -> None:
        """Raise StaleMirrorError if a mirror is too old."""
        for keeper in self._keepers:
            keeper.check()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Refresh while the block runs."""
        for keeper in self._keepers:
            keeper.start()
        try:
            yield
        finally:
            for keeper in self._keepers:
                keeper.stop()
