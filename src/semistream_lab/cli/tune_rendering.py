"""Shows what tuning has found: the choices, how far they are apart, and the curve around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from semistream.cli.json_output import Scalar
from semistream.cli.rendering import console, is_plain, plain_table
from semistream.core.budget import format_bytes
from semistream_lab.cli.bench_rendering import bar
from semistream_lab.cost import CurvePoint, Situation, Tuning

_BAR_CELLS = 32
_MAX_POINTS = 15


@dataclass(frozen=True)
class Tuned:
    """What was found for one algorithm."""

    by_model: Tuning
    measured: Tuning | None
    default_rate: float
    """What the model says of the default parameters."""

    @property
    def measured_model_choice(self) -> float | None:
        """The measured service rate of the model's choice: where measuring began."""
        if self.measured is None or not self.measured.curve:
            return None
        return self.measured.curve[0].service_rate

    @property
    def distance(self) -> float | None:
        """How much of the best measured rate the model's choice misses."""
        if self.measured is None or self.measured_model_choice is None:
            return None
        return 1 - self.measured_model_choice / self.measured.service_rate


def show(results: Sequence[Tuned], situation: Situation, profile: str) -> None:
    """Print the choices as a table and, for a single algorithm, the curve around them."""
    out = console()
    out.print()
    out.print("The parameters that let most tuples be served", style="bold")
    where = "side by side" if situation.ranks == "sorted" else "spread over the table"
    out.print(
        f"{situation.master_rows:,} master rows of {situation.row_bytes} bytes, {format_bytes(situation.memory_bytes)} "
        f"of memory, Zipf exponent {situation.exponent:g}, frequent keys {where}, costs of the profile {profile!r}",
        style="dim",
    )
    out.print()
    _show_choices(results, out)
    for result in results:
        if result.by_model.note:
            out.print(result.by_model.note, style="yellow")
    if len(results) == 1:
        _show_curves(results[0], out)


def rows(result: Tuned, situation: Situation, profile: str) -> list[dict[str, Scalar]]:
    """Return every point that was tried as a flat object."""
    flat: list[dict[str, Scalar]] = []
    for tuning in filter(None, (result.by_model, result.measured)):
        for point in tuning.curve:
            row: dict[str, Scalar] = {
                "algorithm": tuning.algorithm,
                "by": tuning.by,
                "best": dict(point.parameters) == dict(tuning.parameters),
                "master_rows": situation.master_rows,
                "row_bytes": situation.row_bytes,
                "page_bytes": situation.page_bytes,
                "memory_bytes": situation.memory_bytes,
                "zipf": situation.exponent,
                "ranks": situation.ranks,
                "accounting": situation.accounting,
                "profile": profile,
                "service_rate": point.service_rate,
                "default_rate": result.default_rate,
                "distance": result.distance,
            }
            row.update({f"parameter_{name}": value for name, value in point.parameters.items()})
            flat.append(row)
    return flat


def _show_choices(results: Sequence[Tuned], out: Console) -> None:
    table = plain_table()
    table.add_column("Algorithm", style="cyan", no_wrap=True)
    table.add_column("By", no_wrap=True)
    table.add_column("Parameters")
    for head in ("Default\ntuples/s", "Tuned\ntuples/s", "Gain"):
        table.add_column(head, justify="right", no_wrap=True)
    for result in results:
        model = result.by_model
        table.add_row(
            model.algorithm,
            "model",
            _parameters(model.parameters),
            f"{result.default_rate:,.0f}",
            f"[bold]{model.service_rate:,.0f}[/]",
            f"{model.service_rate / result.default_rate - 1:+.0%}",
        )
        if result.measured is not None:
            table.add_row(
                "",
                "measured",
                _parameters(result.measured.parameters),
                "",
                f"[bold]{result.measured.service_rate:,.0f}[/]",
                "",
            )
    out.print(table)
    for result in results:
        if result.distance is not None and result.measured_model_choice is not None:
            out.print(
                f"Measured, the model's choice for {result.by_model.algorithm} serves "
                f"{result.measured_model_choice:,.0f} tuples/s: {result.distance:.1%} below the best that was measured."
            )


def _show_curves(result: Tuned, out: Console) -> None:
    tuning = result.measured or result.by_model
    for parameter in tuning.parameters:
        points = _thinned(tuning.along(parameter))
        if len(points) < 2:
            continue
        out.print()
        table = plain_table(padding=(0, 1, 0, 0))
        table.add_column(parameter, justify="right", no_wrap=True)
        table.add_column("Tuples/s", justify="right", no_wrap=True)
        table.add_column("", style="green", no_wrap=True)
        for point in points:
            value = point.parameters[parameter]
            shown = _value(value)
            if value == tuning.parameters[parameter]:
                shown = f"[bold]{shown}[/]"
            share = point.service_rate / tuning.service_rate
            table.add_row(shown, f"{point.service_rate:,.0f}", bar(share, _BAR_CELLS, plain=is_plain(out)))
        out.print(table)


def _thinned(points: Sequence[CurvePoint]) -> Sequence[CurvePoint]:
    """Return evenly chosen points, the best among them."""
    if len(points) <= _MAX_POINTS:
        return points
    step = len(points) / _MAX_POINTS
    best = max(range(len(points)), key=lambda place: points[place].service_rate)
    places = sorted({*(int(place * step) for place in range(_MAX_POINTS)), best})
    return [points[place] for place in places]


def _parameters(parameters: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in parameters.items()) or "none"


def _value(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.3g}"
