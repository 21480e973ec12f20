"""The look-up that people write by hand: `mapInPandas`, a cache of recent rows, and a database behind it."""
