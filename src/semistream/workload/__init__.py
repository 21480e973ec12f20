"""Generated and recorded streams, and the master tables they ask: keys, arrivals, traces and the sales example."""

from semistream.workload.absent import AbsentKeys
from semistream.workload.arrivals import (
    ArrivalSource,
    BurstyArrivals,
    ConstantArrivals,
    IntermittentArrivals,
    PoissonArrivals,
)
from semistream.workload.drift import DriftingKeys
from semistream.workload.keys import KeySource, ZipfKeys
from semistream.workload.sales import Sales, products
from semistream.workload.stream import Workload
from semistream.workload.traces import record, replay

__all__ = [
    "AbsentKeys",
    "ArrivalSource",
    "BurstyArrivals",
    "ConstantArrivals",
    "DriftingKeys",
    "IntermittentArrivals",
    "KeySource",
    "PoissonArrivals",
    "Sales",
    "Workload",
    "ZipfKeys",
    "products",
    "record",
    "replay",
]
