"""Master data that stays in memory: rows by key, or whole pages."""
