"""What users would pick instead of semistream, measured side by side with it on the same data."""
