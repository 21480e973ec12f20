"""From rows to a version: sources are coded, sorted and packed into pages, by a build, a merge or a compaction."""
