"""The demo: generated sales, enriched from a product master into a warehouse, with a proof and a page about it."""

from __future__ import annotations

from semistream.spark.demo.folder import DemoFolder
from semistream.spark.demo.proof import Proof, prove
from semistream.spark.demo.running import DemoSettings, prepare, stream_sales, warm_up
from semistream.spark.demo.summary import DemoSummary

__all__ = ["DemoFolder", "DemoSettings", "DemoSummary", "Proof", "prepare", "prove", "stream_sales", "warm_up"]
