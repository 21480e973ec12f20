"""The paged file: a master table as a directory of immutable files with checksummed pages (docs/page_format.md)."""

from semistream.store.paged_file.build import build
from semistream.store.paged_file.coding import Progress
from semistream.store.paged_file.merge import merge
from semistream.store.paged_file.reader import PagedFileStore
from semistream.store.paged_file.vacuum import info, vacuum
from semistream.store.paged_file.verify import verify

__all__ = ["PagedFileStore", "Progress", "build", "info", "merge", "vacuum", "verify"]
