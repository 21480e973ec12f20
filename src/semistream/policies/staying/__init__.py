"""Which tuples stay for a later run when the input of a run has ended."""

from semistream.policies.staying.sweep import Sweep

__all__ = ["Sweep"]
