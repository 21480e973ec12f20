"""Small JSON files with a checksum; a crash while one is written leaves the old one or the new one, whole."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semistream.core.durable_files import sync_directory, write_durably
from semistream.core.errors import SemistreamError

_MAX_BYTES = 10_000_000


class DamagedFileError(SemistreamError):
    """A file that semistream wrote beside a query cannot be read as it was written."""


def write_sealed(path: Path, format_number: int, content: Mapping[str, Any], *, replace: bool) -> bool:
    """Write a file durably and at once; unless `replace`, a file that is there stays and the answer is False.

    Must be called by one process at a time for each `path`, or with contents that differ in their "id": the temporary
    file has its name from them.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    sealed = {"format": format_number, "crc": _checksum(content), "content": content}
    temporary = path.with_name(f".{path.name}.{content.get('id', '')}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        write_durably(temporary, json.dumps(sealed, indent=1).encode() + b"\n")
        if replace:
            temporary.replace(path)
        else:
            os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True


def read_sealed(path: Path, format_number: int) -> tuple[int, dict[str, Any]] | None:
    """Return the format of a file and what it holds, or None if there is no file.

    Files from before there was a checksum come as they are: it is the caller who knows them.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise DamagedFileError(f"{path} is too large to be a semistream file: restore it from a backup.")
        read = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read ({error.strerror}): fix that and start again.") from None
    try:
        sealed = json.loads(read)
        number = sealed["format"]
        if isinstance(number, int) and number > format_number:
            raise DamagedFileError(
                f"{path} has format {number}, but this version knows formats up to {format_number}: it is damaged, or "
                f"was written by a newer semistream, which must then run the pipeline."
            )
        if isinstance(number, int) and number > 0:
            if "crc" in sealed:
                content = sealed["content"]
                if sealed["crc"] == _checksum(content) and isinstance(content, dict):
                    return number, content
            elif number < format_number:
                return number, sealed
    except (ValueError, KeyError, TypeError):
        pass
    raise damaged(path)


def damaged(path: Path) -> DamagedFileError:
    """Return the error about a file whose content is not what was written."""
    return DamagedFileError(
        f"{path} is damaged, so what the pipeline was started with is unknown: restore it from a backup, or remove "
        f"it if source, master table and sink still match the checkpoint."
    )


def _checksum(content: object) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())
