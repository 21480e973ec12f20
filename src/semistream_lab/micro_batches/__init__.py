"""Joins that are given micro-batches, as a task on Spark is, on the model clock."""
