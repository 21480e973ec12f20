"""How an algorithm wants its memory divided."""

from __future__ import annotations

from dataclasses import dataclass

from semistream.core.errors import InvalidSettingError
from semistream.policies.contract import PageChoice


@dataclass(frozen=True)
class AsSuits:
    """No wish: what suits the disk, the memory and the accounting."""


@dataclass(frozen=True)
class Bytes:
    """So many bytes."""

    count: int


AS_SUITS, NOTHING = AsSuits(), Bytes(0)


@dataclass(frozen=True)
class MemoryShare:
    """A share of all memory."""

    share: float


@dataclass(frozen=True)
class TableShare:
    """A share of the master table."""

    share: float


@dataclass(frozen=True)
class Reads:
    """So many times what one read brings."""

    count: float


@dataclass(frozen=True)
class Runs:
    """Runs of neighbouring page groups, as many as this memory takes; page groups are then as small as may be."""

    memory: MemoryShare | AsSuits = AS_SUITS


@dataclass(frozen=True)
class TupleSpace:
    """A cache of single master tuples."""

    memory: MemoryShare
    memory_beside_rows: MemoryShare | None = None
    """In real time and where waiting tuples have rows, if it is another share then."""
    policy_bytes: int = 0
    """What the policies need for each cached tuple."""
    table_if_it_fits: bool = False
    """It has every master tuple where the memory has room for all of them, in joins of bare keys."""


@dataclass(frozen=True)
class BlockSpace:
    """A cache of whole page groups, of one at least."""

    memory: MemoryShare | Reads


@dataclass(frozen=True)
class WholeTable:
    """A cache of every master tuple, whatever the budget says."""


Cache = TupleSpace | BlockSpace | WholeTable | None


@dataclass(frozen=True)
class Split:
    """How an algorithm wants its memory divided; what is not named goes to waiting tuples."""

    read: AsSuits | Bytes | TableShare | Runs = AS_SUITS
    """The disk buffer: about how much one read brings."""  # d * v_R
    buffers: int = 1
    """How many buffers the page choice loads at the same time."""
    cache: Cache = None
    """What caches master data; None for nothing."""
    handover: Bytes | MemoryShare | AsSuits = NOTHING
    """The buffer between two phases that run side by side, at most a tenth of all."""
    page_group_bytes: int = 0
    """Book-keeping that the policies need for each page group."""
    positions: bool = False
    """Waiting tuples can be found by their position in the queue, because the page choice needs that."""

    def check_serves(self, recipe: str, choice: PageChoice) -> None:
        """Raise an error unless memory is divided for what the page choice of the recipe needs."""
        for name, given, needed in (
            ("buffers", self.buffers, choice.buffers),
            ("positions", self.positions, choice.needs_positions),
        ):
            if given != needed:
                raise InvalidSettingError(
                    f"The split of {recipe} has {name}={given}, but its page choice {type(choice).__name__} needs "
                    f"{name}={needed}: let the split say the same."
                )
