"""The master table in pages: one contract, one module a backend."""
