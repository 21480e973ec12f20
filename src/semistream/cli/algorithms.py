"""The command that lists the family of algorithms."""

from __future__ import annotations

from typing import Annotated

import typer


def algorithms(
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of flat objects.")] = False,
) -> None:
    """List the family of algorithms, one line each."""
    from semistream.algorithms.registry import ALGORITHMS, DEFAULT_ALGORITHM
    from semistream.cli import json_output
    from semistream.cli.rendering import show_algorithms

    family = list(ALGORITHMS.values())
    if not as_json:
        show_algorithms(family, DEFAULT_ALGORITHM)
        return
    rows: list[dict[str, json_output.Scalar]] = [
        {
            "name": recipe.name,
            "summary": recipe.summary,
            "paper": recipe.paper,
            "bounded_wait": recipe.bounded_wait,
            "sorted_by_use": recipe.sorted_by_use,
            "default": recipe.name == DEFAULT_ALGORITHM,
            "parameters": ", ".join(f"{name}={parameter.default:g}" for name, parameter in recipe.parameters.items()),
        }
        for recipe in family
    ]
    typer.echo(json_output.as_json(rows), nl=False)
