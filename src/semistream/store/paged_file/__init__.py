"""The paged file: a master table as a directory of immutable files with checksummed pages (docs/page_format.md)."""

from semistream.store.paged_file.build import build
from semistream.store.paged_file.coding import Progress
from semistream.store.paged_file.compaction import compact
from semistream.store.paged_file.info import info
from semistream.store.paged_file.merge import merge
from semistream.store.paged_file.reader import PagedFileStore
from semistream.store.paged_file.restore import restore
from semistream.store.paged_file.vacuum import KEEP_FOR, vacuum
from semistream.store.paged_file.verify import verify

__all__ = [
    "KEEP_FOR",
    "PagedFileStore",
    "Progress",
    "build",
    "compact",
    "info",
    "merge",
    "restore",
    "vacuum",
    "verify",
]
