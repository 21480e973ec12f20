"""Rows of any Arrow schema in slots, and what they take."""
