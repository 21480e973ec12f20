"""The examples for operators name what is really there."""

from __future__ import annotations

import re

import pytest
from doc_pages import DOCS, REPOSITORY

from semistream.pipeline.live.live_page import DEFAULT_PORT

FOLDER = REPOSITORY / "examples" / "operations"
RULES = (FOLDER / "alert_rules.yml").read_text(encoding="utf-8")
UNIT = (FOLDER / "semistream@.service").read_text(encoding="utf-8")
RECIPE = (FOLDER / "Containerfile").read_text(encoding="utf-8")


def test_alerts_name_only_metrics_that_there_are() -> None:
    documented = set(re.findall(r"`(semistream_\w+)`", (DOCS / "monitoring.md").read_text(encoding="utf-8")))
    named = set(re.findall(r"\bsemistream_\w+", RULES))
    assert len(named) >= 10
    assert named <= documented


def test_alerts_are_sound_yaml_and_say_what_to_do() -> None:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML to read the rules")
    (group,) = yaml.safe_load(RULES)["groups"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"].endswith((".", "?"))


def test_the_unit_stops_a_pipeline_as_it_wants_to_be_stopped() -> None:
    settings = dict(line.split("=", 1) for line in UNIT.splitlines() if "=" in line and not line.startswith("#"))
    assert settings["ExecStart"].split()[1:] == ["run", "/etc/semistream/%i.toml", "--log", "json"]
    assert set(settings["SuccessExitStatus"].split()) == {"130", "143"}
    assert settings["RestartPreventExitStatus"] == "2"
    assert int(settings["TimeoutStopSec"]) > 60, "a driver gives itself a minute"


def test_the_container_probes_the_usual_port() -> None:
    assert f"127.0.0.1:{DEFAULT_PORT}/health" in RECIPE
    assert RECIPE.index("USER semistream") < RECIPE.index("ENTRYPOINT"), "it does not run as root"
