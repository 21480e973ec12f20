"""Flink as a peer: its own joins, run by the Python and the jars that the environment names."""
