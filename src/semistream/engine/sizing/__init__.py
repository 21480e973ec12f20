"""Divides a byte budget among the parts of a join."""
