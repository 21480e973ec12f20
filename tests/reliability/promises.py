"""All promises of the campaign, in the order in which they are tried."""

from __future__ import annotations

import memory
from campaign import Promise

PROMISES: dict[str, Promise] = {promise.name: promise for promise in (memory.PROMISE,)}
