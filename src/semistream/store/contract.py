"""The contract of a store: a master table that is read in pages, and of what opens and pins its versions."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import TracebackType
from typing import Self, TypeAlias

import numpy as np
import pyarrow as pa

from semistream.core.arrays import BoolArray, Int32Array, Int64Array
from semistream.core.keys import KeyCodec
from semistream.store.found_rows import RowReader
from semistream.store.places.place import NO_LIMIT, Traffic
from semistream.store.saved_rows import SavedRows


@dataclass(frozen=True)
class Capabilities:
    """What a store can do beyond the contract."""

    snapshot: bool
    """A version stays readable after the table has moved on, so that a replay gives the same rows."""
    pages: bool = True
    """Rows can be read in pages. Without them a row is found only by its key, by a `row_reader` that needs keys."""


class PageSet(ABC):
    """The rows of the page ranges of one `read`, range after range.

    Immutable, and independent of the store from then on: it may be kept and used from any thread.
    """

    codes: Int64Array
    """The key code of each row, ascending inside each range."""
    bounds: Int64Array
    """Where each range starts in `codes`, and at the end the number of rows."""

    @abstractmethod
    def take(self, rows: Int64Array, columns: Sequence[str]) -> pa.RecordBatch:
        """Return the named columns of these rows, numbered as in `codes`."""

    def take_within(self, rows: Int64Array, columns: Sequence[str], limit_bytes: int) -> tuple[pa.RecordBatch, int]:
        """Return the named columns of the first of these rows, as many as take `limit_bytes`, and what they take.

        At least one row if any is asked for. A set should override this with what never makes more than it returns.
        """
        taken = self.take(rows, columns)
        size_bytes = int(taken.nbytes)
        if size_bytes <= limit_bytes or len(rows) <= 1:
            return taken, size_bytes
        fewer = max(1, min(len(rows) - 1, len(rows) * limit_bytes // size_bytes))
        return self.take_within(rows[:fewer], columns, limit_bytes)

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """The memory that the set keeps alive."""


def _needs_a_thread() -> bool:
    return False


@dataclass(frozen=True)
class PreparedRead:
    """A read that is ready to be done, once, perhaps in another thread."""

    size_bytes: int
    """What it transfers."""
    read: Callable[[], PageSet]
    begin: Callable[[], bool] = _needs_a_thread
    """Begins to read, so that `read` only waits for the rest; False if the store can do that in a thread only."""


SaysOfCodes: TypeAlias = Callable[[Int64Array], BoolArray]
"""Says something of each code."""


class MasterStore(ABC):
    """A master table whose rows are grouped into pages, and sorted by key code inside each.

    Pages are numbered from 0; all rows of one code are on one page; pages may differ in size. One instance shows one
    version of the table for as long as it lives. `locate` and `read` may be called from several threads at once. A
    store must not cache rows: memory belongs to the join's budget.
    """

    schema: pa.Schema
    """The columns of a row as users see them."""
    key: tuple[str, ...]
    """The names of the key columns."""
    codec: KeyCodec
    """Codes keys of the types that the key columns have."""
    version: int
    """Grows with each change of the table."""
    row_count: int
    page_count: int
    unique: bool
    """No two rows share a key."""
    capabilities: Capabilities
    max_age_seconds: float | None = None
    """How long a row that was read may be answered from memory; None for as long as the store shows its version."""
    warning: str | None = None
    """What users may not expect of a join with this store, in one sentence."""

    @property
    def identity(self) -> str:
        """What tells this version from all others, even of a table that was removed and built again in its place.

        Stores that show the same version of the same table may share it and then must have the same rows; unless a
        store overrides this, each instance has its own.
        """
        return self._own_identity

    @cached_property
    def _own_identity(self) -> str:
        return uuid.uuid4().hex

    @property
    def size_bytes(self) -> int:
        """What a read of all pages as one range transfers."""
        return self.range_bytes(0, self.page_count - 1) if self.page_count else 0

    def unchanged_since(self, version: int, identity: str) -> SaysOfCodes:  # noqa: ARG002
        """Return what says of codes whether their rows, or their absence, are known to be the same in another version.

        `identity` is that of the other version. Must not say so of a code that has changed; may leave out codes that
        have not. Unless a store overrides this, all codes may have changed in any other version. May cost a read of
        that version's index, so ask once for many codes.
        """
        is_same = identity == self.identity
        return lambda codes: np.full(len(codes), is_same, dtype=np.bool_)

    @property
    @abstractmethod
    def index_bytes(self) -> int:
        """The memory that the store's own index takes; it counts against the budget of a join."""

    @property
    @abstractmethod
    def largest_page_bytes(self) -> int:
        """The size of the largest page as `read` transfers it."""

    def page_bytes(self) -> Int64Array:
        """Return what a read of each page transfers; a store that has it in memory should override this."""
        sizes = (self.range_bytes(page, page) for page in range(self.page_count))
        return np.fromiter(sizes, dtype=np.int64, count=self.page_count)

    @property
    def first_codes(self) -> Int64Array | None:
        """The first code of each page, if the store has them in memory and they ascend.

        A reader may then locate by itself.
        """
        return None

    @abstractmethod
    def locate(self, codes: Int64Array) -> Int32Array:
        """Return for each code the page that has its row, if any has; must not read pages. 0 in an empty table."""

    @abstractmethod
    def range_bytes(self, first_page: int, last_page: int) -> int:
        """Return how many bytes a read of the pages from first to last, inclusive, transfers."""

    def ranges_bytes(self, first_pages: Int64Array, last_pages: Int64Array) -> int:
        """Return the sum of `range_bytes` over these ranges; a store with a quicker way should override it."""
        ranges = zip(first_pages.tolist(), last_pages.tolist(), strict=True)
        return sum(self.range_bytes(first, last) for first, last in ranges)

    @abstractmethod
    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        """Read ranges of pages, each from first to last inclusive and each by one request, in the order given.

        Ranges may overlap or repeat. A page that fails its checksum must raise CorruptTableError.
        """

    def expect(self, pages: Int64Array) -> None:  # noqa: B027
        """Be told which pages will be read soon, in ascending order; a store far away may bring them nearer."""

    @property
    def max_expected_pages(self) -> int:
        """How many pages may be expected at a time, so that none has gone again when it is read."""
        return NO_LIMIT

    @property
    def traffic(self) -> Traffic:
        """What was read over the network so far; only counts up."""
        return Traffic()

    def prepared_read(self, first_pages: Int64Array, last_pages: Int64Array) -> PreparedRead:
        """Return what does `read` when it is called.

        A store should do beforehand what needs the interpreter, so that a thread that reads ahead hardly disturbs the
        one that joins. Memory for the pages may be taken already.
        """
        size_bytes = self.ranges_bytes(first_pages, last_pages)
        return PreparedRead(size_bytes, partial(self.read, first_pages, last_pages))

    def row_reader(
        self,
        columns: Sequence[str],  # noqa: ARG002
        max_bytes: int,  # noqa: ARG002
        read_bytes: int = 1 << 20,  # noqa: ARG002
    ) -> RowReader | None:
        """Return what looks up rows of these columns by code within about `max_bytes`, if the store has a quick way.

        Pages that it has to hold for that take at most about `read_bytes`.
        None if rows must be found in the pages that `read` returns.
        """
        return None

    def close(self) -> None:  # noqa: B027
        """Free what the store holds; it must not be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class StoredTable(ABC):
    """A master table where it is stored: knows its versions, opens them, and pins them for queries.

    Cheap to make; it reads nothing before it is asked. May be used from several threads and processes.
    """

    @abstractmethod
    def current_version(self) -> int:
        """Return the number of the newest version; must not be lower than it was before."""

    @abstractmethod
    def open(self, version: int | None = None, *, direct: bool = False) -> MasterStore:
        """Return a store that shows one version: the current one unless it is named.

        With `direct` reads go past the page cache of the operating system, if there is one.
        """

    def identity(self, version: int) -> str:
        """Return the identity of a version; a table that knows it without opening the version should override this."""
        with self.open(version) as store:
            return store.identity

    def pin(self, owner: str, batch: int, version: int | None = None) -> int:  # noqa: ARG002
        """Return the version that a batch of a query is joined with; the first caller's `version`, or the current one.

        A table with snapshots must return the same to all later callers, and must keep what it has returned while a
        restart of the query may replay the batch. One without them has nothing to keep.
        """
        return self.current_version() if version is None else version

    @property
    def pins_take_long(self) -> bool:
        """Whether a pin takes so long that something else should be done meanwhile, as over a network."""
        return False

    @property
    def saved_rows(self) -> SavedRows | None:
        """Where workers save the rows they have cached for workers that start later; None if they save none."""
        return None
