"""Help texts without the marks and type names that Typer puts around arguments."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

_BRACED = re.compile(r"\{([^{}\s]+?)\}(\.\.\.)?")
_TYPED = re.compile(r"^(  [^-\s]\S*)( <[^>]+>)(?=\s)", re.MULTILINE)


class PlainCommand(TyperCommand):
    """A command whose help says `PATH`, not `{PATH}` or `PATH <str>`."""

    def get_help(self, ctx: Any) -> str:
        """Return the help of the command."""
        usage, found, rest = super().get_help(ctx).partition("\n")
        return _BRACED.sub(r"\1", usage) + found + _TYPED.sub(lambda match: match[1] + " " * len(match[2]), rest)
