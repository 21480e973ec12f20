"""Caches of single rows on recorded streams: the best possible, and what others use."""
