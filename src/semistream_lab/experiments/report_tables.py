"""The tables of the lab's page: verdicts, and what was measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from math import isnan

import numpy as np

from semistream.core.arrays import Float64Array
from semistream.core.flat_json import Scalar
from semistream_lab.experiments.curves import Curve
from semistream_lab.experiments.plan import Plan
from semistream_lab.experiments.verdicts_page import MARKS


def claims_table(verdicts: Sequence[Mapping[str, Scalar]], sections: Collection[str]) -> str:
    """Return all claims of a paper; experiments that have a section are linked."""
    rows = "\n".join(_claim(one, sections) for one in verdicts)
    return (
        '<div class="scroll"><table class="claims"><thead><tr><th class="number">No.</th><th class="claim">Claim</th>'
        '<th>Measured</th><th class="verdict">Verdict</th><th class="orders">Sorted / shuffled</th>'
        f'<th class="flips">Flips with</th></tr></thead><tbody>\n{rows}\n</tbody></table></div>'
    )


def _claim(one: Mapping[str, Scalar], sections: Collection[str]) -> str:
    experiment = escape(str(one["experiment"]))
    where = f'<a href="#{experiment}">{experiment}</a>' if one["experiment"] in sections else experiment
    expected = f"Holds if {_lower(str(one['expected']))}" if one["expected"] else ""
    orders = " / ".join(
        _verdict(str(one[f"verdict_{order}"]), word=False) for order in ("sorted", "shuffled") if one["ranks"] != "any"
    )
    return (
        f'<tr id="claim-{one["number"]}"><td>{one["number"]}</td>'
        f"<td>{_text(one['claim'])}{_small(expected)}</td>"
        f"<td>{_text(one['measured'])}{_small(str(one['reason']))}{_small(_settings(one))}</td>"
        f'<td>{_verdict(str(one["verdict"]))}<span class="small">{where}</span></td>'
        f"<td>{orders or 'any'}{_otherwise(one)}</td><td>{_flips(one)}</td></tr>"
    )


def _settings(one: Mapping[str, Scalar]) -> str:
    return f"Depends on {one['depends_on']}." if one.get("depends_on") else ""


def _otherwise(one: Mapping[str, Scalar]) -> str:
    """Return the verdicts with the other reading of a partition and the other law of keys, where they are others."""
    return "".join(
        _small(f"{words}: {one[column]}")
        for words, column in (("from the key on", "verdict_from_the_key_on"), ("Zipf's law", "verdict_discrete_keys"))
        if one.get(column) not in (one[f"verdict_{one['ranks'] if one['ranks'] == 'shuffled' else 'sorted'}"], "")
    )


def _flips(one: Mapping[str, Scalar]) -> str:
    """Return with which changes of the constants the verdict is another, and with which it is unknown."""
    if not one["depends_on_costs"]:
        return "costs do not matter"
    unknown = _small(f"not judged: {one['not_judged_with']}") if one["not_judged_with"] else ""
    return (_text(one["flips_with"]) or ("" if unknown else "none")) + unknown


def short_claims_table(verdicts: Sequence[Mapping[str, Scalar]]) -> str:
    """Return the claims that an experiment judges, one line each."""
    rows = "\n".join(
        f'<tr><td><a href="#claim-{one["number"]}">{one["number"]}</a></td><td>{_text(one["claim"])}</td>'
        f"<td>{_verdict(str(one['verdict']))}</td><td>{_text(one['measured'] or one['reason'])}</td></tr>"
        for one in verdicts
    )
    return f"<table><tbody>\n{rows}\n</tbody></table>"


def numbers_table(plan: Plan, ranks: str, curves: Sequence[Curve]) -> str:
    """Return what was measured: a row for each place, a column for each series."""
    head = "".join(f"<th>{escape(curve.label)}</th>" for curve in curves)
    rows = "\n".join(
        f"<tr><th>{_place(plan, index)}</th>"
        + "".join(f"<td>{_number(curve, index, plan.metric.unit)}</td>" for curve in curves)
        + "</tr>"
        for index in range(len(plan.x.values))
    )
    return _numbers(f"{plan.metric.label}, ranks {ranks}", plan, head, rows)


def predictions_table(plan: Plan, ranks: str, curves: Sequence[Curve]) -> str:
    """Return measured rates beside those of the models, with the deviation of each."""
    curves = [curve for curve in curves if not (np.isnan(curve.predicted) & np.isnan(curve.printed)).all()]
    if not curves:
        return ""
    head = (
        "<th>Series</th><th>Measured</th><th>Corrected model</th><th>off by</th><th>Printed model</th><th>off by</th>"
    )
    rows = "\n".join(
        f"<tr><th>{_place(plan, index)}</th><td>{escape(curve.label)}</td>"
        f"<td>{_number(curve, index, plan.metric.unit)}</td>"
        f"{_model(curve.predicted, curve.y, index)}{_model(curve.printed, curve.y, index)}</tr>"
        for curve in curves
        for index in range(len(plan.x.values))
    )
    table = _numbers(f"Models beside {plan.metric.label.lower()}, ranks {ranks}", plan, head, rows)
    return f"<details><summary>Models beside measurements, ranks {escape(ranks)}</summary>{table}</details>"


def _numbers(title: str, plan: Plan, head: str, rows: str) -> str:
    return (
        f'<h4>{escape(title)}</h4><div class="scroll"><table class="numbers"><thead><tr>'
        f"<th>{escape(plan.x.label)}</th>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>"
    )


def _place(plan: Plan, index: int) -> str:
    return f"{plan.x.values[index] / plan.x.unit:,g}"


def _number(curve: Curve, index: int, unit: float) -> str:
    value, sure = float(curve.y[index]) / unit, float(curve.confidence[index]) / unit
    if isnan(value):
        return "–"
    text = shown(value)
    return text if isnan(sure) else f'{text} <span class="sure">± {shown(sure, like=value)}</span>'


def _model(values: Float64Array, measured: Float64Array, index: int) -> str:
    value, real = float(values[index]), float(measured[index])
    if isnan(value) or isnan(real):
        return "<td>–</td><td>–</td>"
    return f"<td>{shown(value)}</td><td>{100 * (value / real - 1):+.1f}%</td>"


def shown(value: float, like: float | None = None) -> str:
    """Return a number with about four digits, or with as many decimals as another one has."""
    size = abs(value if like is None else like)
    if size >= 1000 or size == 0:
        return f"{value:,.0f}"
    decimals = 1 if size >= 100 else 2 if size >= 10 else 3 if size >= 0.1 else None
    return f"{value:.3g}" if decimals is None else f"{value:.{decimals}f}"


def _verdict(verdict: str, *, word: bool = True) -> str:
    mark = MARKS.get(verdict, "–")
    text = f"{mark} {verdict}" if word else mark
    return f'<b class="{escape(verdict)}" title="{escape(verdict)}">{escape(text)}</b>' if verdict else mark


def _text(value: Scalar) -> str:
    return escape(str(value)) if value is not None else ""


def _small(text: str) -> str:
    return f'<span class="small">{escape(text)}</span>' if text else ""


def _lower(text: str) -> str:
    """Return the text for the middle of a sentence, unless it begins with a name or symbol."""
    return text[0].lower() + text[1:] if len(text) > 1 and text[1].islower() else text
