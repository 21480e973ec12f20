"""When stream tuples enter, and when the next read may start."""

from semistream.policies.phasing.batchwise import Batchwise
from semistream.policies.phasing.equal_parts import EqualParts
from semistream.policies.phasing.few_at_a_time import FewAtATime
from semistream.policies.phasing.refill import Refill
from semistream.policies.phasing.within_deadline import WithinDeadline

__all__ = ["Batchwise", "EqualParts", "FewAtATime", "Refill", "WithinDeadline"]
