"""The names by which Spark knows the tickets of a room."""

FORMAT = "semistream-room"
TICKET = "ticket"
SLOT = "slot"
OFFSET_FIELDS = ("waiting", "parked", "rounds", "rows")
"""What an offset of tickets consists of, by which progress knows a room among the sources."""
