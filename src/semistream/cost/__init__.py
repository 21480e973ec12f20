"""What joins cost: the constants of a machine, measured, and the cost models that use them."""
