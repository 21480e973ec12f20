"""Says where columns lie in a page: which of the nodes and buffers of its message are theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from semistream.core.arrays import Int64Array
from semistream.store.paged.format.row_layout import RowLayout

FIXED, BITS, BYTES, LONG_BYTES = range(4)
"""How values lie: in a fixed number of bytes, in a bit, or as bytes between offsets of 32 or of 64 bits."""


@dataclass(frozen=True)
class Gathering:
    """How rows of some columns are copied out of pages."""

    schema: pa.Schema
    types: tuple[pa.DataType, ...]
    """What the buffers hold: of an extension type the type underneath."""
    places: Int64Array
    """Of each column: its node, its first buffer, how its values lie, and the bytes of a value or offset."""
    nodes: int
    """How many nodes a page must have at least."""
    buffers: int
    """How many buffers a page must have at least."""


class PageColumns:
    """The places of all columns in the pages of one table. May be used from several threads."""

    def __init__(self, layout: RowLayout) -> None:
        self.layout = layout
        self._first_nodes, self._first_buffers = _firsts([field.type for field in layout.page_schema])
        self._known: dict[tuple[str, ...], Gathering | None] = {}

    def gathering(self, names: Sequence[str]) -> Gathering | None:
        """Return how rows of these columns are gathered, or None if a column is nested or has to be decoded else."""
        chosen = tuple(names)
        if chosen not in self._known:
            self._known[chosen] = self._planned(chosen)
        return self._known[chosen]

    def _planned(self, names: tuple[str, ...]) -> Gathering | None:
        types, places = [], []
        for name in names:
            position = self.layout.position(name)
            stored = _underneath(self.layout.page_schema.field(position).type)
            form = _form(stored)
            if form is None or position >= len(self._first_nodes):
                return None
            types.append(stored)
            places.append((self._first_nodes[position], self._first_buffers[position], *form))
        return Gathering(
            schema=self.layout.chosen_schema(names),
            types=tuple(types),
            places=np.array(places, dtype=np.int64).reshape(len(names), 4),
            nodes=max((node + 1 for node, _, _, _ in places), default=0),
            buffers=max((buffer + _buffers_of(kind) for _, buffer, kind, _ in places), default=0),
        )


def _buffers_of(kind: int) -> int:
    return 3 if kind in (BYTES, LONG_BYTES) else 2


def _underneath(data_type: pa.DataType) -> pa.DataType:
    return data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type


def _form(data_type: pa.DataType) -> tuple[int, int] | None:
    """Return how values of a type lie and the bytes of one, or of an offset; None if they are nested."""
    types = pa.types
    if types.is_boolean(data_type):
        return BITS, 0
    if types.is_string(data_type) or types.is_binary(data_type):
        return BYTES, 4
    if types.is_large_string(data_type) or types.is_large_binary(data_type):
        return LONG_BYTES, 8
    if types.is_nested(data_type) or types.is_dictionary(data_type) or isinstance(data_type, pa.BaseExtensionType):
        return None
    try:
        bits = int(data_type.bit_width)
    except ValueError:
        return None
    return (FIXED, bits // 8) if bits % 8 == 0 else None


def _firsts(types: Sequence[pa.DataType]) -> tuple[list[int], list[int]]:
    """Return the first node and the first buffer of each column, up to one whose parts are not known."""
    nodes, buffers = [0], [0]
    for data_type in types:
        parts = _parts(data_type)
        if parts is None:
            return nodes, buffers
        nodes.append(nodes[-1] + parts[0])
        buffers.append(buffers[-1] + parts[1])
    return nodes[:-1], buffers[:-1]


def _parts(data_type: pa.DataType) -> tuple[int, int] | None:
    """Return how many nodes and buffers a column of this type has, or None if that is not known."""
    types = pa.types
    stored = _underneath(data_type)
    form = _form(stored)
    if form is not None:
        return 1, _buffers_of(form[0])
    if types.is_null(stored):
        return 1, 0
    if types.is_list(stored) or types.is_large_list(stored) or types.is_map(stored):
        own_buffers, children = 2, [stored.field(0).type]
    elif types.is_fixed_size_list(stored):
        own_buffers, children = 1, [stored.field(0).type]
    elif types.is_struct(stored):
        own_buffers, children = 1, [stored.field(child).type for child in range(stored.num_fields)]
    else:
        return None
    nodes, buffers = 1, own_buffers
    for child in children:
        parts = _parts(child)
        if parts is None:
            return None
        nodes += parts[0]
        buffers += parts[1]
    return nodes, buffers
