"""Output rows, made as there is room for them."""
