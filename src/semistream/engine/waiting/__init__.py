"""Tuples that wait for a read, and for how long."""
