"""`semistream master` makes a Spark session where a source needs one, or where settings ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from semistream.cli import mirrors

DATABASE = "postgresql://reader@127.0.0.1/shop?table=products"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, str]]]:
    """Return what sessions were asked for: their master and settings."""
    asked: list[tuple[str, Mapping[str, str]]] = []

    def make_session(_name: str, master: str, settings: Mapping[str, str]) -> Any:
        asked.append((master, settings))
        raise KeyboardInterrupt

    monkeypatch.setattr("semistream.spark.spark_session.make_session", make_session)
    return asked


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["spark.master=local[8]", "spark.driver.memory=2g"], ("local[8]", {"spark.driver.memory": "2g"})),
        (["spark.driver.memory=2g"], ("local[*]", {"spark.driver.memory": "2g"})),
    ],
)
def test_settings_make_a_session_for_the_first_load_from_a_database(
    made: list[Any], settings: list[str], expected: tuple[str, dict[str, str]]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        mirrors.build("nowhere", DATABASE, ["id"], None, "error", "64MB", settings)
    assert made == [expected]


def test_without_settings_a_database_is_read_without_spark(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(mirrors, "build_mirror", lambda *_, spark, **__: given.append(spark))
    monkeypatch.setattr(mirrors.MasterTable, "info", lambda _: {})
    mirrors.build("nowhere", DATABASE, ["id"], None, "error", "64MB", None)
    assert given == [None]
    assert made == []
