"""The paged file: a master table as a directory of immutable files with checksummed pages (docs/page_format.md).

Its rooms, each of which may import those after it: `write`, `read`, `versions`, `format`.
"""

from semistream.store.paged.read.paged_file_store import PagedFileStore
from semistream.store.paged.read.verify import verify
from semistream.store.paged.versions.info import info
from semistream.store.paged.versions.restore import restore
from semistream.store.paged.versions.vacuum import KEEP_FOR, vacuum
from semistream.store.paged.write.build import build
from semistream.store.paged.write.coding import Progress
from semistream.store.paged.write.compaction import compact
from semistream.store.paged.write.merge import merge
from semistream.store.paged.write.recluster import recluster

__all__ = [
    "KEEP_FOR",
    "PagedFileStore",
    "Progress",
    "build",
    "compact",
    "info",
    "merge",
    "recluster",
    "restore",
    "vacuum",
    "verify",
]
