"""The stream phase, the disk phase, and the drivers that run them."""
