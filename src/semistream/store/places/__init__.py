"""Where the objects of a table can be."""
