"""The report of a folder of results: figures, verdicts, rows and one page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_lab import FAILING, results_folder, small_plan

from semistream_lab.experiments import judging, report
from semistream_lab.experiments.curves import Curve
from semistream_lab.experiments.evidence import Evidence
from semistream_lab.experiments.figure_style import labels_that_fit, strokes_for
from semistream_lab.experiments.figures import CHARTS, draw
from semistream_lab.experiments.judging import CLAIMS, Finding
from semistream_lab.experiments.papers import CLAIM_COUNT, PAPERS, paper_of
from semistream_lab.experiments.plan import Plan, all_plans
from semistream_lab.experiments.report import write_report
from semistream_lab.experiments.report_tables import shown
from semistream_lab.experiments.results import ResultsFolder
from semistream_lab.experiments.running_points import repeated, run_plans

FIRST_KEYS = ["number", "experiment", "claim", "expected", "measured", "verdict", "reason"]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The only experiment of the lab, with two claims about it."""
    small = small_plan()
    monkeypatch.setattr(report, "all_plans", lambda: {small.id: small})
    monkeypatch.setattr(judging, "CLAIMS", {})
    monkeypatch.setattr(report, "CLAIMS", judging.CLAIMS)

    @judging.claim(1, "small", "HYBRIDJOIN is <faster> & better.", "Above INLJ")
    def is_faster(evidence: Evidence) -> Finding:
        gain = evidence.curve("small", "HYBRIDJOIN") / evidence.curve("small", "INLJ")
        return Finding(bool((gain > 1).all()), f"{gain.min():.1f} times")

    @judging.claim(108, "small", "INLJ is faster.", "Above HYBRIDJOIN", ranks="both")
    def is_slower(evidence: Evidence) -> Finding:
        return Finding(not is_faster(evidence).holds, "slower", "It reads for every tuple.")

    return small


@pytest.fixture
def folder(tmp_path: Path, plan: Plan) -> ResultsFolder:
    """A folder in which the experiment has run."""
    results = results_folder(tmp_path / "results")
    run_plans([plan], results, jobs=1)
    return results


def claims_in(folder: ResultsFolder) -> list[dict[str, Any]]:
    """Return the verdicts that a report has written."""
    return json.loads((folder.path / "claims.json").read_text())


def test_every_claim_has_a_verdict_in_a_flat_object(folder: ResultsFolder) -> None:
    written = write_report(folder)
    claims = claims_in(folder)
    assert [claim["number"] for claim in claims] == list(range(1, CLAIM_COUNT + 1))
    for claim in claims:
        assert list(claim)[:7] == FIRST_KEYS
        assert claim["verdict"] in ("holds", "fails", "depends", "unjudged")
        assert not any(isinstance(value, dict | list) for value in claim.values())
        assert claim["verdict"] == "holds" or claim["reason"]
    assert (claims[0]["verdict"], claims[-1]["verdict"]) == ("holds", "fails")
    assert written.verdicts == {"holds": 1, "fails": 1, "depends": 0, "unjudged": 106}


def test_the_page_needs_no_network_and_no_script(folder: ResultsFolder) -> None:
    text = write_report(folder).page.read_text()
    assert not re.search(r"https?:", text)
    assert "<script" not in text
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    assert text.count("data:image/svg+xml;base64,") == 2


def test_the_page_shows_claims_and_texts_as_they_are(folder: ResultsFolder) -> None:
    text = write_report(folder).page.read_text()
    assert "HYBRIDJOIN is &lt;faster&gt; &amp; better." in text
    assert "Rates &amp; &lt;memory&gt;" in text
    assert "It reads for every tuple." in text
    assert 'id="claim-108"' in text
    assert "not been made yet" not in text


def test_figures_and_rows_stand_beside_the_page(folder: ResultsFolder) -> None:
    write_report(folder)
    names = sorted(path.name for path in (folder.path / "figures").iterdir())
    assert names == ["small-shuffled.png", "small-shuffled.svg", "small.png", "small.svg"]
    rows = json.loads((folder.path / "results.json").read_text())
    assert len(rows) == 8
    assert {row["experiment"] for row in rows} == {"small"}
    assert {(row["series"], row["x"], row["ranks"]) for row in rows} >= {("INLJ", 1e6, "sorted")}
    assert not any(isinstance(value, dict | list) for row in rows for value in row.values())


def test_the_same_results_give_the_same_files(folder: ResultsFolder) -> None:
    def written() -> dict[str, bytes]:
        write_report(folder)
        return {path.name: path.read_bytes() for path in folder.path.rglob("*.*") if path.suffix != ".lock"}

    assert written() == written()


def test_what_was_not_run_is_unjudged_and_counted(tmp_path: Path, plan: Plan) -> None:
    results = results_folder(tmp_path / "results")
    assert write_report(results).experiments == 0
    assert "has not been run" in claims_in(results)[0]["reason"]
    run_plans([plan], results, jobs=1)
    sorted(results.points.iterdir())[0].unlink()
    written = write_report(results)
    assert (written.experiments, written.missing) == (1, 1)
    assert "1 run of these experiments has not been made yet." in written.page.read_text()


def test_a_damaged_point_counts_as_not_run(folder: ResultsFolder) -> None:
    file = sorted(folder.points.iterdir())[0]
    file.write_text("{")
    written = write_report(folder)
    assert (written.damaged, written.missing) == ([file], 1)


def test_failures_of_the_last_run_are_on_the_page(tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = small_plan("small", *FAILING)
    monkeypatch.setattr(report, "all_plans", lambda: {plan.id: failing})
    results = results_folder(tmp_path / "results")
    run_plans([failing], results, jobs=1)
    assert "small (INLJ) failed: " in write_report(results).page.read_text()


def test_repetitions_make_one_value_and_its_confidence(tmp_path: Path, plan: Plan) -> None:
    results = results_folder(tmp_path / "results")
    run_plans([repeated(plan, 3)], results, jobs=1)
    text = write_report(results).page.read_text()
    assert "seeds 0 to 2" in text
    assert len(json.loads((results.path / "results.json").read_text())) == 24


def test_papers_share_the_claims_without_gap() -> None:
    numbers = [number for paper in PAPERS for number in range(paper.first_claim, paper.last_claim + 1)]
    assert numbers == list(range(1, CLAIM_COUNT + 1))
    assert paper_of(60).name == "X-HYBRIDJOIN"


def test_every_claim_of_the_papers_is_judged_by_an_experiment_that_exists() -> None:
    assert sorted(CLAIMS) == list(range(1, CLAIM_COUNT + 1))
    for claim in CLAIMS.values():
        assert claim.experiment in all_plans(), claim.number
        assert claim.ranks in ("sorted", "shuffled", "both")


def curve(label: str, algorithm: str, values: list[float], off: float = 1.0) -> Curve:
    """Return a curve, with models that are off by a factor."""
    y = np.array(values)
    return Curve(label, algorithm, y, 0.1 * y, y * off, y * off * 0.8)


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_every_chart_is_drawn_the_same_each_time(chart: str, scale: str) -> None:
    plan = replace(small_plan(), chart=chart, predict=chart == "prediction")
    plan = replace(plan, x=replace(plan.x, scale=scale), metric=replace(plan.metric, scale=scale))
    curves = [curve("INLJ", "inlj", [10.0, 20.0]), curve("HYBRIDJOIN", "hybridjoin", [3e3, 7e3], 1.02)]
    first, second = draw(plan, curves), draw(plan, curves)
    assert first is not None
    assert first == second
    assert first.png.startswith(b"\x89PNG")
    assert b"<svg" in first.svg
    assert not re.search(rb"dc:date|tIME|Software", first.svg + first.png)


def test_what_was_not_measured_is_left_out_of_a_figure() -> None:
    nothing = curve("INLJ", "inlj", [np.nan, np.nan])
    assert draw(small_plan(), [nothing]) is None
    assert draw(small_plan(), [nothing, curve("HYBRIDJOIN", "hybridjoin", [np.nan, 5.0])]) is not None


def test_curves_differ_without_colours() -> None:
    for algorithms in (["inlj", "meshjoin", "r-meshjoin", "hybridjoin", "x-hybridjoin"], [""] * 8):
        strokes = strokes_for(algorithms)
        assert len({(stroke.marker, stroke.dashes, stroke.filled) for stroke in strokes}) == len(algorithms)


def test_labels_of_an_axis_do_not_run_into_each_other() -> None:
    assert labels_that_fit([50, 100, 150], "linear") == ["50", "100", "150"]
    assert labels_that_fit([1.0, 1000.0, 1010.0], "log") == ["1", "1,000", ""]


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [(12345.6, None, "12,346"), (123.456, None, "123.5"), (1.23456, None, "1.235"), (0.0012345, None, "0.00123"),
     (5.0, 12345.0, "5"), (0.0, None, "0")],
)  # fmt: skip
def test_numbers_have_about_four_digits(value: float, like: float | None, text: str) -> None:
    assert shown(value, like) == text


def test_figures_come_first_and_claims_that_were_not_judged_are_folded_away(folder: ResultsFolder) -> None:
    text = write_report(folder).page.read_text()
    assert text.index("<figure>") < text.index('<h2 id="claims">')
    assert text.index('id="claim-1"') < text.index("claims not judged</summary>") < text.index('id="claim-2"')


def test_a_report_of_a_smaller_scale_says_that_its_verdicts_do_not_judge_the_papers(folder: ResultsFolder) -> None:
    text = write_report(folder).page.read_text()
    assert ("a verdict here does not judge the paper" in text) == (folder.settings.scale != 1)
