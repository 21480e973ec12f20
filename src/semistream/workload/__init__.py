"""Generated and recorded streams, and the master tables they ask: keys, arrivals, traces and the sales example.

Real data is in modules of its own: `tpch`, `clouds` and `flights`.
"""

from semistream.workload.absent import AbsentKeys
from semistream.workload.arrivals import (
    ArrivalSource,
    ConstantArrivals,
    GeneratedArrivals,
    IntermittentArrivals,
)
from semistream.workload.bursty_arrivals import BurstyArrivals
from semistream.workload.drift import DriftingKeys
from semistream.workload.keys import KeySource, ZipfKeys
from semistream.workload.poisson_arrivals import PoissonArrivals
from semistream.workload.repeated_keys import RepeatedKeys
from semistream.workload.sales import Sales, products
from semistream.workload.sales_plan import SalesPlan
from semistream.workload.stream import Workload
from semistream.workload.traces import record, replay

__all__ = [
    "AbsentKeys",
    "ArrivalSource",
    "BurstyArrivals",
    "ConstantArrivals",
    "DriftingKeys",
    "GeneratedArrivals",
    "IntermittentArrivals",
    "KeySource",
    "PoissonArrivals",
    "RepeatedKeys",
    "Sales",
    "SalesPlan",
    "Workload",
    "ZipfKeys",
    "products",
    "record",
    "replay",
]
