"""Which jars a session gets for the formats of a pipeline."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from semistream.core.errors import InvalidSettingError
from semistream.pipeline import jars, running
from semistream.pipeline.reading import read_description


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(jars.FOLDER_VARIABLE, raising=False)


def test_formats_of_spark_itself_need_no_jars() -> None:
    given = {"spark.task.cpus": "1"}
    assert jars.settings_with_jars({"parquet", "json", "noop"}, given) == given
    assert jars.fetched_packages({"parquet"}, given) == []


def test_a_format_that_spark_lacks_is_fetched_in_the_version_of_spark() -> None:
    settings = jars.settings_with_jars({"kafka"}, {"spark.jars.packages": "com.example:own:1"})
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert settings["spark.jars.packages"] == f"com.example:own:1,{package}"
    assert jars.fetched_packages({"kafka"}, {"spark.jars.packages": "com.example:own:1"}) == [package]


def test_jars_that_the_file_names_take_the_place_of_ours() -> None:
    given = {"spark.jars": "/jars/delta-spark_4.2_2.13-9.9.jar", "spark.sql.extensions": "com.example.Own"}
    settings = jars.settings_with_jars({"delta"}, given)
    assert "spark.jars.packages" not in settings
    assert settings["spark.jars"] == given["spark.jars"]
    assert settings["spark.sql.extensions"] == "com.example.Own,io.delta.sql.DeltaSparkSessionExtension"
    own = jars.settings_with_jars({"delta"}, {"spark.sql.catalog.spark_catalog": "com.example.Catalog"})
    assert own["spark.sql.catalog.spark_catalog"] == "com.example.Catalog"


def test_jars_of_a_folder_go_before_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(jars.FOLDER_VARIABLE, str(tmp_path))
    folder = tmp_path / "kafka" / "jars"
    folder.mkdir(parents=True)
    for name in ("spark-sql-kafka-0-10_2.13-4.2.0.jar", "kafka-clients-3.9.2.jar", "slf4j-api-1.7.36.jar"):
        (folder / name).touch()
    settings = jars.settings_with_jars({"kafka"}, {"spark.jars": "/own.jar"})
    wanted = [folder / "kafka-clients-3.9.2.jar", folder / "spark-sql-kafka-0-10_2.13-4.2.0.jar"]
    assert settings == {"spark.jars": ",".join(["/own.jar", *map(str, wanted)])}


def test_a_spark_that_no_jars_exist_for_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "9.1.0")
    with pytest.raises(InvalidSettingError, match=r"no jars of delta for Spark 9\.1\.0: name them") as refused:
        jars.settings_with_jars({"delta"}, {})
    assert "\n" not in str(refused.value)


def test_jars_that_cannot_be_fetched_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "p.toml"
    file.write_text(
        '[pipeline]\nname = "x"\ncheckpoint = "c"\n[source]\nformat = "json"\npath = "in"\nschema = "k INT"\n'
        '[[dimension]]\ntable = "p"\nfrom = "delta:/lake/p"\nkey = "k"\non = "k"\n[sink]\nformat = "noop"\n'
    )

    def fail(*_: object, **__: object) -> None:
        try:
            raise pyspark.errors.PySparkRuntimeError("Java gateway process exited")
        except pyspark.errors.PySparkRuntimeError as error:
            raise InvalidSettingError("Spark cannot start.") from error

    monkeypatch.setattr(running, "make_session", fail)
    told = pytest.raises(InvalidSettingError, match=r"jars it needs \(io\.delta:delta-spark.*SEMISTREAM_JARS")
    with told, running.session_of(read_description(file)):
        pass
