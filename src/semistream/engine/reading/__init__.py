"""What one read brings, and what comes ahead of the join."""
