"""The waiting room: rows that wait between the micro-batches of a query."""
