"""Paths on this machine, also as file: addresses; other addresses are named by their scheme only."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from semistream.core.errors import InvalidSettingError

# Also with one slash, which is what a Path makes of two, and with one scheme in another, as in jdbc:postgresql://.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?:[A-Za-z0-9+.-]+:)*/")
_DATABASE = re.compile(r"(?i)(jdbc|odbc):")


def scheme_of(text: str) -> str | None:
    """Return the scheme of an address in small letters, or None if a text is a path."""
    scheme_match = _ADDRESS.match(text) or _DATABASE.match(text)
    return scheme_match[1].lower() if scheme_match is not None else None


def local_path_of(place: str | os.PathLike[str], what: str) -> Path:
    """Return the path that a text, path or file: address means; `what` begins the sentence about any other address.

    The rest of an address may hold a password, so that an error must not repeat it.
    """
    text = os.fspath(place)
    scheme = scheme_of(text)
    if scheme is None:
        return Path(text)
    if scheme != "file":
        raise InvalidSettingError(f"{what} at {scheme}:// addresses are not supported: give the path of a directory.")
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise InvalidSettingError(
            f"{what} at file:// addresses of other machines cannot be read: give a path on this one."
        )
    return Path(unquote(parts.path))
