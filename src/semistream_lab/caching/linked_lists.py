"""Doubly linked lists of keys in two arrays: a list is a ring through a node of its own, its anchor."""

from __future__ import annotations

import numpy as np

from semistream.core.arrays import Int32Array
from semistream.core.compile import kernel


def empty_lists(key_count: int, lists: int) -> tuple[Int32Array, Int32Array]:
    """Return the next and the previous node of every key and, behind them, of the anchors of some empty lists."""
    nodes = np.arange(key_count + lists, dtype=np.int32)
    return nodes, nodes.copy()


@kernel
def push_front(after: Int32Array, before: Int32Array, anchor: int, node: int) -> None:
    """Put a node that is in no list at the front of one."""
    first = after[anchor]
    after[anchor] = node
    before[node] = anchor
    after[node] = first
    before[first] = node


@kernel
def unlink(after: Int32Array, before: Int32Array, node: int) -> None:
    """Take a node out of its list."""
    after[before[node]] = after[node]
    before[after[node]] = before[node]


@kernel
def pop_back(after: Int32Array, before: Int32Array, anchor: int) -> int:
    """Take the last node out of a list that is not empty, and return it."""
    last = before[anchor]
    unlink(after, before, last)
    return int(last)
