"""The demo: generated sales, enriched from a product master into a warehouse, with a proof and a page about it."""

from __future__ import annotations

from semistream.core.extras import require

require("pyspark", extra="spark", purpose="The demo")

from semistream.demo.demo_run import DemoSettings, prepare, stream_sales, warm_up  # noqa: E402
from semistream.demo.folder import DemoFolder  # noqa: E402
from semistream.demo.proof import Proof, prove  # noqa: E402
from semistream.demo.summary import DemoSummary, size_beside  # noqa: E402

__all__ = [
    "DemoFolder",
    "DemoSettings",
    "DemoSummary",
    "Proof",
    "prepare",
    "prove",
    "size_beside",
    "stream_sales",
    "warm_up",
]
