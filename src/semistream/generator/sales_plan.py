"""What a generated stream of sales is like, in a value that can be sent to another process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from semistream.core.errors import InvalidSettingError
from semistream.generator.absent import AbsentKeys
from semistream.generator.arrival_times import ConstantArrivals, GeneratedArrivals, IntermittentArrivals
from semistream.generator.bursty_arrivals import BurstyArrivals
from semistream.generator.poisson_arrivals import PoissonArrivals
from semistream.generator.sales import Sales
from semistream.generator.settings import number_from, one_of, positive_number, share_of_one, whole_number
from semistream.generator.stream import Workload
from semistream.generator.stream_keys import MasterKeySource, ZipfKeys

ARRIVALS = ("constant", "poisson", "bursty", "intermittent")
RANKS = ("sorted", "shuffled")
FIRST_DATE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class SalesPlan:
    """Describes an endless stream of sales completely: equal plans give equal rows at every position.

    The products are those that `products(products, seed=…, stride=stride)` makes. `exponent` is the skew (0: all
    products sell alike), `ranks` says whether the products that sell best are neighbours ("sorted") or spread
    ("shuffled"), and the share `absent` of the sales is of products that are not in the catalogue, which needs a
    `stride` of at least 2.

    On average `rate` sales arrive a second: "constant" at equal distances, "poisson" independently, "bursty" as the
    papers' self-similar stream with a step of `step_seconds`, or "intermittent" with `on_seconds` of sales followed by
    `off_seconds` of silence. The date of a sale is `start` plus its arrival time.
    """

    products: int
    exponent: float = 1.0
    ranks: Literal["sorted", "shuffled"] = "shuffled"
    stride: int = 1
    absent: float = 0.0
    seed: int = 1
    rate: float = 1000.0
    arrivals: Literal["constant", "poisson", "bursty", "intermittent"] = "constant"
    step_seconds: float = 0.1
    on_seconds: float = 10.0
    off_seconds: float = 10.0
    start: datetime = FIRST_DATE

    def __post_init__(self) -> None:
        """Refuse what makes no sense, by the name of the setting."""
        whole_number("products", self.products, minimum=1)
        number_from("exponent", self.exponent, minimum=0)
        one_of("ranks", self.ranks, RANKS)
        if (self.products + 1) * whole_number("stride", self.stride, minimum=1) >= 2**63:
            raise InvalidSettingError("products times stride must fit in 64 bits: lower one of them.")
        if share_of_one("absent", self.absent) > 0 and self.stride < 2:
            raise InvalidSettingError(
                "absent needs gaps between the products: set stride to 2 or more, here and for the master table."
            )
        whole_number("seed", self.seed, minimum=0)
        positive_number("rate", self.rate)
        one_of("arrivals", self.arrivals, ARRIVALS)
        positive_number("step_seconds", self.step_seconds)
        positive_number("on_seconds", self.on_seconds)
        number_from("off_seconds", self.off_seconds, minimum=0)
        if self.start.tzinfo is None:
            raise InvalidSettingError(f"start must have a time zone, but {self.start.isoformat()} has none: add one.")

    def sales(self) -> Sales:
        """Return the sales from the first one on; a few milliseconds."""
        keys: MasterKeySource = ZipfKeys(
            self.products, self.exponent, seed=self.seed, ranks=self.ranks, stride=self.stride
        )
        if self.absent > 0:
            keys = AbsentKeys(keys, self.absent, self.seed)
        return Sales(Workload(keys, self.arrival_times()), seed=self.seed, start=self.start)

    def arrival_times(self) -> GeneratedArrivals:
        """Return when the sales arrive, in seconds since the stream began."""
        match self.arrivals:
            case "constant":
                return ConstantArrivals(self.rate)
            case "poisson":
                return PoissonArrivals(self.rate, self.seed)
            case "bursty":
                return BurstyArrivals(self.step_seconds, self.seed, mean_rate=self.rate)
            case "intermittent":
                on_rate = self.rate * (1 + self.off_seconds / self.on_seconds)
                return IntermittentArrivals(on_rate, self.on_seconds, self.off_seconds)
