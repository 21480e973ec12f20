"""semistream on Spark: enrichment of DataFrames, master tables built by Spark, pipelines."""
