"""Objects that are gathered in a file of this machine before they are sent."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

from semistream.core import durable_files as files
from semistream.store.places.place import NewObject
from semistream.store.saved_rows import NewRows


class SpooledObject(NewObject):
    """A temporary file without a name, so that nothing is left of it when the process dies; `send` puts it.

    It lies where the temporary files of the machine are (TMPDIR).
    """

    def __init__(self, name: str, send: Callable[[int], None] | None) -> None:
        self.name = name
        self._send = send
        self.descriptor, path = tempfile.mkstemp(prefix="semistream-")
        os.unlink(path)  # noqa: PTH108

    def write(self, data: bytes | memoryview) -> None:
        """Append to the file."""
        files.write_all(self.descriptor, data)

    def finish(self) -> None:
        """Send the file."""
        assert self._send is not None
        self._send(self.descriptor)
        self.close()

    def close(self) -> None:
        """Close the file, which is gone then."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            files.close(descriptor)

    def discard(self) -> None:
        """Forget it; nothing was sent."""
        self.close()

    def set_aside(self, label: str) -> NewObject:
        """Stay as it is, but never be sent."""
        self.name, self._send = label, None
        return self

    def __del__(self) -> None:
        self.close()


class SpooledRows(NewRows):
    """What a worker saves, before it is sent."""

    def __init__(self) -> None:
        self.spool = SpooledObject("rows", None)

    def writable(self) -> bool:
        """Say that it can be written."""
        return True

    def write(self, data: Any) -> int:
        """Append all bytes."""
        view = memoryview(data).cast("B")
        self.spool.write(view)
        return len(view)

    def write_start(self, data: bytes) -> None:
        """Replace the first bytes."""
        files.write_all_at(self.spool.descriptor, data, 0)

    def close(self) -> None:
        """Stay: the content is sent after whoever wrote it has closed it."""

    def __exit__(self, *_: object) -> None:
        self.spool.close()
