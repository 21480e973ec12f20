"""Which files are the table: manifests and indexes, how a version is committed, kept, pinned and removed."""
