"""The streams that a pipeline can start from, a kind a file."""
