"""The page of a lab run: one HTML file that needs neither a network nor scripts."""

from __future__ import annotations

import os
import platform
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from string import Template

from semistream.core.flat_json import Scalar
from semistream_lab.experiments.curves import Curve
from semistream_lab.experiments.judging import DEPENDS, FAILS, HOLDS, UNJUDGED, VERDICTS
from semistream_lab.experiments.papers import PAPERS
from semistream_lab.experiments.plan import Plan
from semistream_lab.experiments.report_style import REPORT_STYLE
from semistream_lab.experiments.report_tables import claims_table, numbers_table, predictions_table, short_claims_table
from semistream_lab.experiments.results import LabSettings

_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The papers' experiments</title>
<style>
$style</style>
</head>
<body>
<main>
<header>
<h1>The papers' experiments, run again</h1>
<p class="lead">$lead</p>
</header>
$notes
<section class="tiles">
$tiles
</section>
<nav class="card">
<h3>Contents</h3>
<ul class="contents">
$contents
</ul>
</nav>
<h2 id="experiments">The experiments</h2>
<p class="says">$about_experiments</p>
$experiments
$cards
<h2 id="claims">The claims</h2>
<p class="says">$about_claims</p>
$claims
$not_run
<footer>$footer</footer>
</main>
</body>
</html>
""")


@dataclass(frozen=True)
class ShownFigure:
    """A figure of an experiment in one order of ranks, with the numbers in it."""

    ranks: str
    name: str
    svg: bytes
    curves: Sequence[Curve]


@dataclass(frozen=True)
class Section:
    """What the page tells about one experiment."""

    plan: Plan
    figures: Sequence[ShownFigure]
    verdicts: Sequence[Mapping[str, Scalar]]


@dataclass(frozen=True)
class ReportPage:
    """All that is on the page."""

    settings: LabSettings
    sections: Sequence[Section]
    verdicts: Sequence[Mapping[str, Scalar]]
    not_run: Sequence[Plan]
    missing: int
    failures: Sequence[Mapping[str, Scalar]]
    cards: str = ""
    """The parts about experiments with figures of their own, if they have been run."""

    def html(self) -> str:
        """Return the text of the page."""
        return _PAGE.substitute(
            style=REPORT_STYLE,
            lead=escape(self._lead()),
            notes="\n".join(f'<p class="note">{escape(note)}</p>' for note in self._notes()),
            tiles="\n".join(self._tiles()),
            contents="\n".join(self._contents()),
            about_claims=escape(_ABOUT_CLAIMS),
            claims="\n".join(self._claims()),
            cards=self.cards,
            about_experiments=escape(self._about_experiments()),
            experiments="\n".join(_section(section, self.settings) for section in self.sections),
            not_run=self._not_run(),
            footer=escape(_footer()),
        )

    def _lead(self) -> str:
        clock = (
            "on a clock that charges the assumed costs of the papers' machine for every operation"
            if self.settings.clock == "model"
            else "in real time, on this machine"
        )
        size = "" if self.settings.scale == 1 else f", with tables and memory of {self.settings.scale:g} of their size"
        return (
            f"{_counted(len(self.sections), 'experiment')} of five papers on joining a stream with a table on disk, "
            f"{clock}{size}, and a verdict on each of the papers' {len(self.verdicts)} claims."
        )

    def _notes(self) -> list[str]:
        notes = []
        if self.settings.scale != 1:
            notes.append(
                f"This is a quick look: with {self.settings.scale:g} of the papers' size, a verdict here does not "
                f"judge "
                f"the paper's claim. Run with --scale 1 for that."
            )
        if self.missing:
            verb = "has" if self.missing == 1 else "have"
            notes.append(f"{_counted(self.missing, 'run')} of these experiments {verb} not been made yet.")
        notes += [f"{one.get('experiment')} ({one.get('series')}) failed: {one.get('error')}" for one in self.failures]
        return notes

    def _tiles(self) -> list[str]:
        counts = Counter(str(verdict["verdict"]) for verdict in self.verdicts)
        flips = sum(1 for verdict in self.verdicts if verdict["flips_with"])
        tiles = (
            ("Hold", counts[HOLDS], f"of {len(self.verdicts)} claims", HOLDS),
            ("Fail", counts[FAILS], "each with its reason", FAILS),
            ("Depend", counts[DEPENDS], "on a setting that no paper prints", ""),
            ("Unjudged", counts[UNJUDGED], "not run, undecided, or cannot be judged here", ""),
            ("Depend on a constant", flips, "flip if a cost is halved or doubled", ""),
        )
        return [
            f'<div class="tile"><span class="label">{label}</span><span class="number {kind}">{count}</span>'
            f'<span class="about">{escape(about)}</span></div>'
            for label, count, about, kind in tiles
        ]

    def _contents(self) -> list[str]:
        papers = [f'<li><a href="#{_anchor(paper.name)}">Claims: {escape(paper.name)}</a></li>' for paper in PAPERS]
        return [
            f'<li><a href="#{section.plan.id}">{section.plan.id}</a> {escape(section.plan.title)}</li>'
            for section in self.sections
        ] + papers

    def _claims(self) -> list[str]:
        ran = {section.plan.id for section in self.sections}
        cards = []
        for paper in PAPERS:
            verdicts = [one for one in self.verdicts if one["paper"] == paper.name]
            counts = Counter(str(one["verdict"]) for one in verdicts)
            verdict_counts = ", ".join(
                f"{counts[name]} {name.removesuffix('s') if counts[name] != 1 else name}" for name in _WORDS
            )
            cards.append(
                f'<section class="card" id="{_anchor(paper.name)}"><h3>{escape(paper.name)}</h3>'
                f'<p class="says">{escape(paper.about)}: {verdict_counts}.</p>{_claims_of(verdicts, ran)}</section>'
            )
        return cards

    def _about_experiments(self) -> str:
        how = (
            "Bars are 95% confidence intervals: over repetitions if there are several, otherwise over the parts of a "
            "run. Ranks are sorted if frequent keys are neighbours in the table, shuffled if they are spread over it."
        )
        return how if self.settings.clock == "model" else f"{how} Reads go past the page cache where that is possible."

    def _not_run(self) -> str:
        if not self.not_run:
            return ""
        names = ", ".join(plan.id for plan in self.not_run)
        return f'<section class="card"><h3>Not run</h3><p class="says">{escape(names)}.</p></section>'


_WORDS = VERDICTS
_ABOUT_CLAIMS = (
    "Each verdict is for the order of ranks that the paper used; the other order is shown next to it. A claim depends "
    "if a setting that its paper does not print decides it; the cost constants are such settings, and the last column "
    "names those that reverse the finding when they are halved or doubled."
)


def _claims_of(verdicts: Sequence[Mapping[str, Scalar]], ran: Collection[str]) -> str:
    """Return the claims that were judged as a table, and the others folded away."""
    judged = [one for one in verdicts if one["verdict"] != UNJUDGED]
    others = [one for one in verdicts if one["verdict"] == UNJUDGED]
    table = claims_table(judged, ran) if judged else ""
    if not others:
        return table
    summary = f"{_counted(len(others), 'claim')} not judged"
    return f"{table}<details><summary>{summary}</summary>{claims_table(others, ran)}</details>"


def _section(section: Section, settings: LabSettings) -> str:
    plan = section.plan
    wide = " wide" if plan.chart == "grid" else ""
    parts = [
        f'<section class="card" id="{plan.id}">',
        f'<h3>{escape(plan.title)}<span class="id">{plan.id}: {escape(plan.paper)}, {escape(plan.figure)}</span></h3>',
        f'<p class="says">The paper: {escape(plan.says)}</p>',
        f'<div class="figures{wide}">{"".join(_figure(plan, figure) for figure in section.figures)}</div>',
    ]
    if section.verdicts:
        parts.append(f"<h4>Claims</h4>{short_claims_table(section.verdicts)}")
    parts += [predictions_table(plan, figure.ranks, figure.curves) for figure in section.figures if plan.predict]
    tables = "".join(numbers_table(plan, figure.ranks, figure.curves) for figure in section.figures)
    parts.append(f"<details><summary>Numbers</summary>{tables}</details>")
    parts.append(f'<p class="settings">{escape(_settings(plan, settings))}</p>')
    parts.append("</section>")
    return "\n".join(part for part in parts if part)


def _figure(plan: Plan, figure: ShownFigure) -> str:
    data = b64encode(figure.svg).decode()
    caption = f"Ranks {figure.ranks}" if len(plan.ranks) > 1 else plan.title
    text = f"{plan.metric.label} over {plan.x.label}, ranks {figure.ranks}"
    return (
        f'<figure><img alt="{escape(text)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _settings(plan: Plan, settings: LabSettings) -> str:
    """Return in one line how the runs were made."""
    fixed = [f"{name.split('.')[-1].replace('_', ' ')} {_shown(value)}" for name, value in plan.fixed.items()]
    points = list(plan.points(scale=settings.scale, clock=settings.clock))
    profile = f"costs of {points[0].point.profile}" if settings.clock == "model" else "real time"
    seeds = f"seed {plan.seeds[0]}" if len(plan.seeds) == 1 else f"seeds {plan.seeds[0]} to {plan.seeds[-1]}"
    parts = [*fixed, profile, seeds, _counted(len({one.point for one in points}), "run")]
    if settings.scale != 1:
        parts.append(f"table and memory {settings.scale:g} times as large")
    return f"Settings: {', '.join(parts)}."


def _shown(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,g}" if value < 10_000 else f"{value:,.0f}"
    return str(value)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _anchor(name: str) -> str:
    return "paper-" + name.lower().replace(" ", "-")


def _footer() -> str:
    cores = len(os.sched_getaffinity(0))
    return (
        f"Made with semistream {version('semistream')}, NumPy {version('numpy')} and Python "
        f"{platform.python_version()} on {_counted(cores, 'core')}. Next to this page: figures/, "
        "claims.json, results.json."
    )
