"""Pipelines: source, enrichment, SQL expressions and sink, described by a TOML file."""

from __future__ import annotations

from semistream.core.extras import require

require("pyspark", extra="spark", purpose="A pipeline")

from semistream.pipeline.description import PipelineDescription  # noqa: E402
from semistream.pipeline.reading import read_description  # noqa: E402

__all__ = ["PipelineDescription", "read_description"]
