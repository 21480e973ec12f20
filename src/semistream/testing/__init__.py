"""The public test kit: a reference join, a store with faults, and (in `strategies`) what hypothesis needs.

`semistream.testing.strategies` is imported on its own, because it alone needs hypothesis.
"""

from semistream.testing.faults import FaultyStore, InjectedFaultError
from semistream.testing.reference import Joined, assert_same_rows, joined_rows, reference_join

__all__ = ["FaultyStore", "InjectedFaultError", "Joined", "assert_same_rows", "joined_rows", "reference_join"]
