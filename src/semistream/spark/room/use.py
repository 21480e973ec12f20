"""How `enrich` gives a stream a room: its settings, and the tickets that come with the rows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from semistream.algorithms.shared_parameters import CACHE_SHARE
from semistream.core.durations import parse_seconds
from semistream.core.errors import InvalidSettingError
from semistream.engine.recipe import Recipe
from semistream.spark.partitioning import Partitioning, parallelism
from semistream.spark.room.names import FORMAT, SLOT, TICKET
from semistream.spark.room.room import Room, room_address
from semistream.spark.room.room_file import SINCE, TRIES
from semistream.spark.room.slots import one_slot_a_task, slot_of
from semistream.spark.room.source import RoomSource
from semistream.spark.room.visit import RoomUse
from semistream.store.address import Address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from semistream.spark.held_join import Order

ROOM_COLUMNS = (SINCE, TRIES)
"""What a row of a stream has in a room besides its own columns."""
_CACHE_SHARE = 0.4
_WATERMARK = "spark.watermarkDelayMs"
_MAX_SLOTS = 10_000


@dataclass(frozen=True)
class Waiting:
    """What users have said about a room."""

    address: Address
    max_wait_seconds: float
    retry_seconds: float
    parks: bool

    def prepared(self, key: Sequence[str], stream: pa.Schema, slots: int) -> RoomUse:
        """See that the room fits, if there is one; the query makes it when it starts."""
        _, terms = Room.checked(self.address, key, stream, slots)
        return RoomUse(self.address, terms.slots, self.max_wait_seconds, self.retry_seconds, self.parks, terms)


def checked_waiting(
    df: DataFrame,
    room: str | os.PathLike[str] | None,
    max_wait: float | str | None,
    retry_for: float | str,
    unmatched: str | None,
) -> Waiting | None:
    """Return what was said about a room, if there is one; raises InvalidSettingError if it makes no sense."""
    retry_seconds = parse_seconds(retry_for)
    parks = unmatched == "park"
    if room is None:
        if max_wait is not None:
            raise InvalidSettingError("Rows that may wait need a place: give `room`, a folder beside the checkpoint.")
        return None
    if max_wait is None and not parks:
        raise InvalidSettingError("How long may rows wait in the room? Give `max_wait`, such as '10 seconds'.")
    if not df.isStreaming:
        raise InvalidSettingError("Only rows of a stream can wait in a room: leave `room` and `max_wait` out.")
    for field in df.schema:
        if _WATERMARK in (field.metadata or {}):
            raise InvalidSettingError(
                f"The stream has a watermark on {field.name!r}, by which rows that wait would be dropped as late: "
                f"declare the watermark after enrich, and allow for `max_wait`."
            )
    return Waiting(room_address(room), parse_seconds(max_wait or 0.0), retry_seconds, parks)


def order_in_room(order: str | None) -> Order:
    """Return the order of rows where some wait: none."""
    if order == "input":
        raise InvalidSettingError("Rows that wait are overtaken by others: leave `order` out, or leave `room` out.")
    if order not in (None, "any"):
        raise InvalidSettingError(f"{order!r} is not an order of rows: choose 'any'.")
    return "any"


def parameters_in_room(recipe: Recipe, given: Mapping[str, float] | None) -> dict[str, float]:
    """Return the parameters of an algorithm that divides its memory by itself, where rows wait between micro-batches.

    What waits is what the cache has missed within the longest wait, which is little compared with what could wait.
    """
    parameters = dict(given or {})
    if recipe.tunes_itself and CACHE_SHARE.name in recipe.parameters:
        parameters.setdefault(CACHE_SHARE.name, _CACHE_SHARE)
    return parameters


def slots_wanted(df: DataFrame, partitioning: Partitioning) -> int:
    """Return how many slots a new room gets."""
    if partitioning == "auto":
        return parallelism(df)
    if isinstance(partitioning, bool) or not isinstance(partitioning, int) or not 1 <= partitioning <= _MAX_SLOTS:
        raise InvalidSettingError(
            f"{partitioning!r} is not a number of slots for a room: set `partitioning` to 'auto' or a positive number."
        )
    return partitioning


def with_tickets(stream: DataFrame, keys: Sequence[str], use: RoomUse, table: Address) -> DataFrame:
    """Return the rows of the stream and the tickets of the room, a slot a task."""
    session = stream.sparkSession
    session.dataSource.register(RoomSource)
    assert use.terms is not None
    tickets = (
        session.readStream.format(FORMAT)
        .option("room", str(use.address))
        .option("terms", json.dumps(asdict(use.terms)))
        .option("master", str(table) if use.parks else "")
        .option("retrySeconds", str(use.retry_seconds) if use.parks else "")
        .load()
    )
    rows = stream.select("*", slot_of(keys, use.slots).alias(SLOT), F.lit(None).cast("string").alias(TICKET))
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in stream.schema]
    return one_slot_a_task(rows.union(tickets.select(*nothing, SLOT, TICKET)), use.slots)
