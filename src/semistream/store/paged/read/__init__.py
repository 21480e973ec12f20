"""From a version to rows: pages are placed, fetched, checked and gathered."""
