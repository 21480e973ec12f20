"""The jars that formats need and Spark does not have: where each is found, in one table.

A jar is looked for in Spark's own folder and among the jars that [spark] names, then in the folder that the environment
variable SEMISTREAM_JARS names, and is otherwise fetched by Spark from Maven.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from semistream.core.errors import InvalidSettingError
from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.sources.kinds import kind_of
from semistream.spark.spark_session import java_of

FOLDER_VARIABLE = "SEMISTREAM_JARS"
"""Names a folder with a folder of jars for each connector, as `make servers` makes it."""
_JARS, _PACKAGES, _EXTENSIONS = "spark.jars", "spark.jars.packages", "spark.sql.extensions"
_NAMING = (_JARS, _PACKAGES, "spark.driver.extraClassPath")
_ANY_SPARK = ""


@dataclass(frozen=True)
class Connector:
    """What makes Spark know some formats: jars, and the settings that they need."""

    name: str
    """Also the name of its folder below SEMISTREAM_JARS."""
    formats: tuple[str, ...]
    coordinates: Mapping[str, str]
    """In Maven, by the first two numbers of Spark's version; `{spark}` stands for the whole version."""
    artifact: str
    """What the name of its main jar begins with."""
    known_class: str
    jars: tuple[str, ...]
    """Patterns of all its jars in a folder, since Spark has the rest of what they need."""
    settings: Mapping[str, str] = field(default_factory=dict)

    def package(self) -> str | None:
        """Return where Maven has it for this Spark; None if there is none."""
        version = _spark_version()
        short = ".".join(version.split(".")[:2])
        found = self.coordinates.get(short, self.coordinates.get(_ANY_SPARK))
        return None if found is None else found.format(spark=version)

    def needs(self, formats: Iterable[str]) -> bool:
        """Say whether one of these formats needs it."""
        return any(name.lower() in self.formats for name in formats)


CONNECTORS = (
    Connector(
        name="kafka",
        formats=("kafka",),
        coordinates={_ANY_SPARK: "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}"},
        artifact="spark-sql-kafka-0-10",
        known_class="org.apache.spark.sql.kafka010.KafkaSourceProvider",
        jars=("spark-sql-kafka*.jar", "spark-token-provider*.jar", "kafka-clients*.jar", "commons-pool2*.jar"),
    ),
    Connector(
        name="avro",
        formats=("avro",),
        coordinates={_ANY_SPARK: "org.apache.spark:spark-avro_2.13:{spark}"},
        artifact="spark-avro",
        known_class="org.apache.spark.sql.avro.CatalystDataToAvro",
        jars=("spark-avro*.jar",),
    ),
    Connector(
        name="delta",
        formats=("delta",),
        coordinates={
            "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
            "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
            "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
        },
        artifact="delta-spark",
        known_class="io.delta.sql.DeltaSparkSessionExtension",
        jars=("delta-*.jar", "unitycatalog-*.jar"),
        settings={
            _EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    Connector(
        name="iceberg",
        formats=("iceberg",),
        coordinates={
            "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
            "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        },
        artifact="iceberg-spark-runtime",
        known_class="org.apache.iceberg.spark.source.IcebergSource",
        jars=("iceberg-spark-runtime*.jar",),
        settings={_EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
    ),
)


def formats_of(description: PipelineDescription) -> set[str]:
    """Return the formats of a pipeline that may need jars: of its sources, its sink and its mirrors."""
    mirrors = [dimension.mirror for dimension in description.dimensions if dimension.mirror is not None]
    kinds = {mirror.source.kind for mirror in mirrors if mirror.source is not None}
    sources = {name for source in description.sources for name in kind_of(source.format).connectors(source)}
    topic = description.sink.topic
    values = {topic.value} if topic is not None else set()
    return {description.sink.format} | sources | kinds | values


def settings_with_jars(formats: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session that knows these formats; what was given stays, and goes before ours."""
    wanted = list(formats)
    settings = dict(given)
    for connector in (each for each in CONNECTORS if each.needs(wanted)):
        for name, value in connector.settings.items():
            settings[name] = _listed(settings.get(name), value) if name == _EXTENSIONS else settings.get(name, value)
        if _is_given(connector, given) or _is_in_spark(connector):
            continue
        jars = _in_folder(connector)
        if jars:
            settings[_JARS] = _listed(settings.get(_JARS), ",".join(jars))
            continue
        package = connector.package()
        if package is None:
            raise InvalidSettingError(
                f"There are no jars of {connector.name} for Spark {_spark_version()}: name them by "
                f'"{_PACKAGES}" or "{_JARS}" in [spark], or use a Spark that has them.'
            )
        settings[_PACKAGES] = _listed(settings.get(_PACKAGES), package)
    return settings


def fetched_packages(formats: Iterable[str], given: Mapping[str, str]) -> list[str]:
    """Return what Spark has to fetch from Maven for these formats beyond what was given."""
    asked = set(given.get(_PACKAGES, "").split(","))
    return [one for one in settings_with_jars(formats, given).get(_PACKAGES, "").split(",") if one and one not in asked]


def cannot_be_fetched(packages: Iterable[str]) -> InvalidSettingError:
    """Return the error that Spark has not started, most likely because it could not fetch its jars."""
    return InvalidSettingError(
        f"Spark has not started with the jars it needs ({', '.join(packages)}): let this machine reach Maven's "
        f'repository, name other jars by "{_JARS}" in [spark], or put them into folders below one that the environment '
        f"variable {FOLDER_VARIABLE} names."
    )


def check_jars(spark: SparkSession, formats: Iterable[str]) -> None:
    """Raise an error if a session, which others may have made, does not know one of these formats."""
    wanted = list(formats)
    for connector in (each for each in CONNECTORS if each.needs(wanted)):
        if not _has_class(spark, connector.known_class):
            package = connector.package() or connector.artifact
            raise InvalidSettingError(
                f'The Spark session has no jars of {connector.name}: start it with "{_PACKAGES}" set to {package}.'
            )


def _has_class(spark: SparkSession, name: str) -> bool:
    java = java_of(spark)
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    session_loader = spark._jsparkSession.sharedState().jarClassLoader()
    for each in (session_loader, loader):
        try:
            java.java.lang.Class.forName(name, False, each)
        except Py4JError:
            continue
        return True
    return False


def _is_given(connector: Connector, given: Mapping[str, str]) -> bool:
    return any(connector.artifact in given.get(name, "") for name in _NAMING)


def _is_in_spark(connector: Connector) -> bool:
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    return any((Path(home) / "jars").glob(f"{connector.artifact}*.jar"))


def _in_folder(connector: Connector) -> list[str]:
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return []
    places = (Path(folder) / connector.name / "jars", Path(folder) / connector.name)
    for place in places:
        found = sorted({str(jar) for pattern in connector.jars for jar in place.glob(pattern)})
        if found:
            return found
    return []


def _listed(before: str | None, value: str) -> str:
    """Return a list of Spark with one more value, unless it has it."""
    if not before:
        return value
    return before if value in before.split(",") else f"{before},{value}"


def _spark_version() -> str:
    match = re.match(r"\d+\.\d+\.\d+", pyspark.__version__)
    return match[0] if match else pyspark.__version__
