"""Pipelines: source, enrichment, SQL expressions and sink, described by a TOML file."""

from __future__ import annotations

from semistream.spark.pipeline.description import PipelineDescription
from semistream.spark.pipeline.reading import read_description

__all__ = ["PipelineDescription", "read_description"]
