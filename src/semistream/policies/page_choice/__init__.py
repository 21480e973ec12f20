"""Which page group of the master table to read next."""

from semistream.policies.page_choice.at_position import AtPosition
from semistream.policies.page_choice.due_frequent import DueFrequent
from semistream.policies.page_choice.every_tuple import EveryTuple
from semistream.policies.page_choice.full_slot import FullSlot
from semistream.policies.page_choice.oldest_and_youngest import OldestAndYoungest
from semistream.policies.page_choice.oldest_waiting import OldestWaiting
from semistream.policies.page_choice.planned_runs import PlannedRuns
from semistream.policies.page_choice.ring import Ring

__all__ = [
    "AtPosition",
    "DueFrequent",
    "EveryTuple",
    "FullSlot",
    "OldestAndYoungest",
    "OldestWaiting",
    "PlannedRuns",
    "Ring",
]
