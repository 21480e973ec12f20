"""Help texts without the marks and type names that Typer puts around arguments."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

_BRACED = re.compile(r"\{([^{}\s]+?)\}(\.\.\.)?")
_TYPE = re.compile(r" <[^>]+>$")
_FACTS = re.compile(r"\[(default: |required|x>=)[^\[\]]*\]$")
_UNBROKEN = "\N{NO-BREAK SPACE}"


class PlainCommand(TyperCommand):
    """A command whose help says `PATH`, not `{PATH}` or `PATH <str>`."""

    def get_help(self, ctx: Any) -> str:
        """Return the help of the command."""
        usage, found, rest = super().get_help(ctx).partition("\n")
        return _BRACED.sub(r"\1", usage) + found + rest.replace(_UNBROKEN, " ")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options."""
        parts: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                name = _TYPE.sub("", record[0]) if is_argument else record[0]
                about = _FACTS.sub(lambda found: _plain_facts(found[0]), record[1])
                parts["Arguments" if is_argument else "Options"].append((name, about))
        for title, records in parts.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _plain_facts(facts: str) -> str:
    """Return default and limits in words, on one line."""
    words = re.sub(r"default: \((.*)\)", r"default: \1", facts)
    words = re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", words).replace("x>=", "at least ")
    return re.sub(r"\b\d{5,}\b", lambda found: f"{int(found[0]):,}", words).replace(" ", _UNBROKEN)
