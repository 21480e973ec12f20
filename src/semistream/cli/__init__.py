"""The command line: commands apart from their rendering."""
