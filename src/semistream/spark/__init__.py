"""semistream on Spark: enrichment of DataFrames, master tables built by Spark, pipelines."""

from semistream.core.extras import require

require("pyspark", extra="spark", purpose="Work on Spark")
