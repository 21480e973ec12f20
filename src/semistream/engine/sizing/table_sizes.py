"""How large the pages, page groups and rows of a master table are."""

from __future__ import annotations

from semistream.core.value_widths import fixed_width
from semistream.store.contract import MasterStore


def table_bytes(store: MasterStore) -> int:
    """Return what all pages take."""
    return store.range_bytes(0, store.page_count - 1) if store.page_count else 0


def mean_page_bytes(store: MasterStore) -> float:
    """Return what a page takes on average."""
    return table_bytes(store) / store.page_count if store.page_count else 1.0


def mean_row_bytes(store: MasterStore) -> float:
    """Return what a row takes on average."""
    return table_bytes(store) / store.row_count if store.row_count else 1.0


def usual_page_bytes(store: MasterStore) -> float:
    """Return a size that nearly all pages keep to."""
    return min(store.largest_page_bytes, 2 * page_group_bytes(store, 1)) if store.page_count else 0


def largest_page_bytes(store: MasterStore, limit_bytes: int) -> int:
    """Return the size of the largest page that is ever read."""
    if store.largest_page_bytes <= limit_bytes:
        return store.largest_page_bytes
    sizes = store.page_bytes()
    return int(sizes[sizes <= limit_bytes].max(initial=0))


def page_group_bytes(store: MasterStore, pages: int) -> int:
    """Return what so many pages take on average, at least 1."""
    return -(-table_bytes(store) * pages // store.page_count) if store.page_count else 1


def page_group_pages(store: MasterStore, read_bytes: float) -> int:
    """Return how many pages come nearest to a read of this size, at least one."""
    if not store.page_count:
        return 1
    return max(1, min(store.page_count, round(read_bytes / mean_page_bytes(store))))


def variable_bytes(store: MasterStore, columns: tuple[str, ...]) -> float:
    """Estimate what the named columns of a row take beyond fixed widths, by the mean size of a row."""
    if not columns or not store.row_count:
        return 0.0
    mean = mean_row_bytes(store)
    variable = [field.name for field in store.schema if fixed_width(field.type) is None]
    rest = max(8.0, mean - sum(fixed_width(field.type) or 0 for field in store.schema)) / max(1, len(variable))
    return rest * sum(name in variable for name in columns)
