"""A store that shows another store; the base of those that add something to each read."""

from __future__ import annotations

from semistream.core.arrays import Int32Array, Int64Array
from semistream.store.contract import MasterStore, PageSet, SaysOfCodes
from semistream.store.places.place import Traffic


class WrappingStore(MasterStore):
    """Passes everything on to the store inside."""

    def __init__(self, inside: MasterStore) -> None:
        self.inside = inside
        self.schema = inside.schema
        self.key = inside.key
        self.codec = inside.codec
        self.version = inside.version
        self.row_count = inside.row_count
        self.page_count = inside.page_count
        self.unique = inside.unique
        self.capabilities = inside.capabilities
        self.max_age_seconds = inside.max_age_seconds
        self.warning = inside.warning

    @property
    def identity(self) -> str:
        """That of the store inside."""
        return self.inside.identity

    @property
    def size_bytes(self) -> int:
        """What a read of all pages inside transfers."""
        return self.inside.size_bytes

    def unchanged_since(self, version: int, identity: str) -> SaysOfCodes:
        """Return what says of which codes the store inside knows that they are the same."""
        return self.inside.unchanged_since(version, identity)

    @property
    def index_bytes(self) -> int:
        """The size of the index inside."""
        return self.inside.index_bytes

    @property
    def largest_page_bytes(self) -> int:
        """The size of the largest page inside."""
        return self.inside.largest_page_bytes

    @property
    def first_codes(self) -> Int64Array | None:
        """The first code of each page inside."""
        return self.inside.first_codes

    def locate(self, codes: Int64Array) -> Int32Array:
        """Return the page of each code."""
        return self.inside.locate(codes)

    def range_bytes(self, first_page: int, last_page: int) -> int:
        """Return how many bytes a read of these pages transfers."""
        return self.inside.range_bytes(first_page, last_page)

    def ranges_bytes(self, first_pages: Int64Array, last_pages: Int64Array) -> int:
        """Return how many bytes a read of all ranges transfers; who overrides `range_bytes` must override this too."""
        return self.inside.ranges_bytes(first_pages, last_pages)

    def read(self, first_pages: Int64Array, last_pages: Int64Array) -> PageSet:
        """Read ranges of pages."""
        return self.inside.read(first_pages, last_pages)

    def expect(self, pages: Int64Array) -> None:
        """Tell the store inside."""
        self.inside.expect(pages)

    @property
    def max_expected_pages(self) -> int:
        """How many pages the store inside can bring nearer."""
        return self.inside.max_expected_pages

    @property
    def traffic(self) -> Traffic:
        """What the store inside has read over the network."""
        return self.inside.traffic

    def close(self) -> None:
        """Close the store inside."""
        self.inside.close()
