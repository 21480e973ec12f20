"""The command that lists the family of algorithms, and the parameters of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from semistream.core.flat_json import Scalar

if TYPE_CHECKING:
    from semistream.engine.recipe import Recipe


def algorithms(
    name: Annotated[str | None, typer.Argument(help="List the parameters of this algorithm.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of flat objects.")] = False,
) -> None:
    """List the algorithms, or one algorithm's parameters."""
    from semistream.algorithms.registry import ALGORITHMS, DEFAULT_ALGORITHM, algorithm_named
    from semistream.cli import json_output
    from semistream.cli.rendering import show_algorithms, show_parameters

    if name is not None and as_json:
        typer.echo(json_output.as_json(parameter_rows(algorithm_named(name))), nl=False)
    elif name is not None:
        show_parameters(algorithm_named(name))
    elif as_json:
        rows = [_row(recipe, is_default=recipe.name == DEFAULT_ALGORITHM) for recipe in ALGORITHMS.values()]
        typer.echo(json_output.as_json(rows), nl=False)
    else:
        show_algorithms(list(ALGORITHMS.values()), DEFAULT_ALGORITHM)


def _row(recipe: Recipe, *, is_default: bool) -> dict[str, Scalar]:
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "paper": recipe.paper,
        "bounded_wait": recipe.bounded_wait,
        "sorted_by_use": recipe.sorted_by_use,
        "default": is_default,
        "parameters": ", ".join(f"{name}={known.default_text}" for name, known in recipe.parameters.items()),
    }


def parameter_rows(recipe: Recipe) -> list[dict[str, Scalar]]:
    """Return one flat object a parameter of a recipe."""
    return [
        {
            "algorithm": recipe.name,
            "name": parameter.name,
            "kind": type(parameter).__name__.lower(),
            "default": parameter.default,
            "low": parameter.low,
            "high": parameter.high,
            "about": parameter.about,
        }
        for parameter in recipe.parameters.values()
    ]
