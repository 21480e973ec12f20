"""Delta for a Spark session of its own."""

from __future__ import annotations

from servers.spark_jars import jars_of


def delta_settings() -> dict[str, str]:
    """Return the settings of a session that reads and writes Delta tables; Spark has all other jars itself."""
    jars = [*jars_of("delta", "delta-*.jar"), *jars_of("delta", "unitycatalog-*.jar")]
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
