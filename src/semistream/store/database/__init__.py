"""Tables of databases as master tables, read where they are."""
