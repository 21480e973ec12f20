"""Generated streams and their master table: keys, arrivals, and the sales that the demo and `semistream-sales` show."""

from semistream.generator.absent import AbsentKeys
from semistream.generator.arrival_times import (
    ArrivalSource,
    ConstantArrivals,
    GeneratedArrivals,
    IntermittentArrivals,
)
from semistream.generator.bursty_arrivals import BurstyArrivals
from semistream.generator.poisson_arrivals import PoissonArrivals
from semistream.generator.sales import Sales, products
from semistream.generator.sales_plan import SalesPlan
from semistream.generator.stream import Workload
from semistream.generator.stream_keys import KeySource, ZipfKeys

__all__ = [
    "AbsentKeys",
    "ArrivalSource",
    "BurstyArrivals",
    "ConstantArrivals",
    "GeneratedArrivals",
    "IntermittentArrivals",
    "KeySource",
    "PoissonArrivals",
    "Sales",
    "SalesPlan",
    "Workload",
    "ZipfKeys",
    "products",
]
