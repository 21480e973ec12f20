"""What the bytes mean: names and headers of files, pages, and the columns inside a page (docs/page_format.md)."""
