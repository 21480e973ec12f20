"""Joins so small that the fewest reads can be found by looking at all there are, and rules that choose pages."""
