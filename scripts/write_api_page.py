"""Writes docs/api.md from the docstrings of the public names; a test compares the page with what this would write.

Run it with `python scripts/write_api_page.py` after a change of a public signature or docstring.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import semistream
from semistream.core import errors

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
_WIDTH = 120
_FIRST = ("enrich", "Dimension", "MasterTable", "join", "JoinedBatches")
_NOT_MADE_BY_USERS = ("JoinedBatches",)
_ONLY_MADE_BY_USERS = "Source"
"""What the names of classes end with that users make and hand on."""
_TYPES = {
    "On": "str, sequence of str, or mapping",
    "On | None": "str, sequence of str, mapping or None",
    "TableAddress": "MasterTable, str or path",
    "TableAddress | Dimension | Sequence[Dimension]": "MasterTable, str, path or list of Dimension",
    "MasterStore | TableAddress": "MasterTable, str, path or open store",
    "Any": "see meaning",
    "tuple[str, int] | Literal[False] | None": "(str, int), False or None",
    "Sequence[str] | None": "sequence of str, or None",
    "str | Sequence[str]": "str or sequence of str",
    "str | Sequence[str] | None": "str, sequence of str, or None",
    "Mapping[str, str] | None": "mapping or None",
    "Mapping[str, float] | None": "mapping or None",
    "Iterable[int]": "iterable of int",
    "Partitioning": '"auto", "none" or int',
    "Batches": "table, reader or iterable of record batches",
    "DeadLetters | None": "function or None",
    "Progress | None": "function or None",
    "str | os.PathLike[str]": "str or path",
    "str | os.PathLike[str] | None": "str, path or None",
}
_HEAD = """\
# API

<!-- Written by scripts/write_api_page.py from the docstrings: change those, and run it. -->

All public names are in `semistream`, which is usually imported as `import semistream as ss`. Sizes are bytes or strings
such as "64MB", "64 MiB" or, with Spark's meaning of 1024 times 1024, "64m". Everything that semistream raises on
purpose is a [`SemistreamError`](#errors) whose message is one sentence that says what to do.
"""


def page() -> str:
    """Return the whole page."""
    names = [name for name in semistream.__all__ if name != "SemistreamError"]
    ordered = [*(name for name in _FIRST if name in names), *(name for name in sorted(names) if name not in _FIRST)]
    parts = [_HEAD]
    for name in ordered:
        target = getattr(semistream, name)
        parts.extend(_class(name, target) if inspect.isclass(target) else _callable(f"## `{name}`", name, target))
    parts.extend(_errors())
    return "\n".join(parts)


def _class(name: str, target: type) -> Iterator[str]:
    if name in _NOT_MADE_BY_USERS:
        yield f"## `{name}`\n"
        yield f"{_summary(target)}\n"
    else:
        yield from _callable(f"## `{name}`", name, target)
    for member, value in vars(target).items() if not name.endswith(_ONLY_MADE_BY_USERS) else ():
        if member.startswith("_"):
            continue
        if isinstance(value, property):
            yield f"### `{name}.{member}`\n"
            yield f"A property. {_summary(value)}\n"
        elif callable(getattr(target, member)):
            yield from _callable(f"### `{name}.{member}`", f"{name}.{member}", getattr(target, member))


def _callable(heading: str, name: str, target: Callable[..., Any]) -> Iterator[str]:
    yield f"{heading}\n"
    signature = inspect.signature(target)
    parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    yield f"```text\n{_call(name, parameters)}\n```\n"
    yield f"{_summary(target)}\n"
    explained = _arguments(target) or {each.name: "see above" for each in parameters if _is_named(each.name, target)}
    if unexplained := {parameter.name for parameter in parameters} - set(explained):
        raise SystemExit(f"The docstring of {name} does not explain {', '.join(sorted(unexplained))}: add it to Args.")
    if unknown := set(explained) - {parameter.name for parameter in parameters}:
        raise SystemExit(f"The docstring of {name} explains {', '.join(sorted(unknown))}, which it does not take.")
    if parameters:
        yield "| parameter | type | default | meaning |\n|---|---|---|---|"
        yield from (
            f"| `{parameter.name}` | {_type(parameter)} | {_default(parameter)} | {_cell(explained[parameter.name])} |"
            for parameter in parameters
        )
        yield ""


def _call(name: str, parameters: list[inspect.Parameter]) -> str:
    """Return a call with all parameters, on one line if it fits."""
    shown: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        has_default = parameter.default is not parameter.empty
        shown.append(f"{parameter.name}={_literal(parameter.default)}" if has_default else parameter.name)
    one_line = f"{name}({', '.join(shown)})"
    if len(one_line) <= _WIDTH:
        return one_line
    return "\n".join([f"{name}(", *(f"    {each}," for each in shown), ")"])


def _summary(target: object) -> str:
    """Return the docstring without its list of arguments."""
    prose = (inspect.getdoc(target) or "").split("\nArgs:\n")[0].strip()
    return "\n\n".join(textwrap.fill(paragraph, _WIDTH) for paragraph in prose.split("\n\n"))


def _arguments(target: object) -> dict[str, str]:
    """Return what the docstring says about each argument."""
    _, _, listed = (inspect.getdoc(target) or "").partition("\nArgs:\n")
    entries = re.split(r"^    (?=\w+:)", listed, flags=re.MULTILINE)[1:]
    return {name: " ".join(text.split()) for name, _, text in (entry.partition(":") for entry in entries)}


def _is_named(parameter: str, target: object) -> bool:
    """Say whether the text of a docstring without a list of arguments explains one of them."""
    return f"`{parameter}`" in _summary(target)


def _type(parameter: inspect.Parameter) -> str:
    written = str(parameter.annotation)
    return _cell(_TYPES.get(written, written.replace(" | ", " or ")))


def _default(parameter: inspect.Parameter) -> str:
    return "required" if parameter.default is parameter.empty else f"`{_cell(_literal(parameter.default))}`"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _errors() -> Iterator[str]:
    yield "## Errors\n"
    yield "All of them are in `semistream.core.errors` and derive from `ss.SemistreamError`.\n"
    yield "| error | meaning |\n|---|---|"
    for name, target in sorted(vars(errors).items()):
        if inspect.isclass(target) and issubclass(target, errors.SemistreamError):
            yield f"| `{name}` | {_cell(_summary(target))} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
