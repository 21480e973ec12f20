"""The names by which Spark knows the tickets of a room."""

FORMAT = "semistream-room"
TICKET = "ticket"
SLOT = "slot"
OFFSET_FIELDS = {"waiting", "parked", "rounds"}
