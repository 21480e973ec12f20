"""Measurements of points, a kind in each module; `kinds` says which is which."""
