"""The live page of a running pipeline: what it shows, how it is kept in bounded memory, and who serves it."""
