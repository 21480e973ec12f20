"""The papers' experiments: plans, what was measured, and what it says about each claim."""
