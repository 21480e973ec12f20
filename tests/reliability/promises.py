"""All promises of the campaign, in the order in which they are tried."""

from __future__ import annotations

import corruption
import file_operations
import killed_refreshes
import memory
import real_signals
import worker_memory
import writers_and_readers
from campaign import Promise
from exactly_once import EXACTLY_ONCE, EXACTLY_ONCE_FROM_KAFKA, WAITING_ROOM
from load import LOAD
from racing_attempts import RACING_ATTEMPTS
from racing_rooms import RACING_ROOMS
from second_pipeline import SECOND_PIPELINE
from sink_kills import SINK_KILLS

PROMISES: dict[str, Promise] = {
    promise.name: promise
    for promise in (
        file_operations.PROMISE,
        real_signals.PROMISE,
        corruption.PROMISE,
        writers_and_readers.PROMISE,
        killed_refreshes.PROMISE,
        memory.PROMISE,
        worker_memory.PROMISE,
        EXACTLY_ONCE,
        WAITING_ROOM,
        SINK_KILLS,
        EXACTLY_ONCE_FROM_KAFKA,
        SECOND_PIPELINE,
        RACING_ATTEMPTS,
        RACING_ROOMS,
        LOAD,
    )
}
