"""Small decisions without I/O: which page next, what to cache, when to take in."""
