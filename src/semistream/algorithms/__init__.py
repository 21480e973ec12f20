"""The family: one short recipe a file."""
