"""What the live page may tell about a pipeline's file: names, and never an address, option or setting."""

from __future__ import annotations

import re
from dataclasses import dataclass

from semistream.core.durations import parse_seconds
from semistream.pipeline.description import PipelineDescription


@dataclass(frozen=True)
class AboutPipeline:
    """The names of a pipeline's parts, and what it is to be measured by."""

    name: str
    source: str
    sink: str
    trigger_seconds: float
    """0 starts a batch as soon as there are rows."""
    available_now: bool
    max_batch_seconds: float | None
    """A batch that takes longer is a reason to call the pipeline unhealthy."""
    max_master_age_seconds: float | None
    tells_keys: bool


def about(description: PipelineDescription) -> AboutPipeline:
    """Return what the page may tell."""
    page, trigger = description.statistics.page, description.trigger
    return AboutPipeline(
        name=description.name,
        source=", ".join(_named(source.format, source.table or source.path) for source in description.sources),
        sink=_named(description.sink.format, description.sink.path),
        trigger_seconds=_seconds(trigger.every),
        available_now=trigger.available_now,
        max_batch_seconds=page.max_batch_seconds,
        max_master_age_seconds=page.max_master_age_seconds,
        tells_keys=page.keys,
    )


def _named(format_name: str, path: str | None) -> str:
    """Return a format with the last part of a path, which is enough to tell places apart and holds no secret."""
    last = re.split(r"[?#]", path)[0].rstrip("/").rsplit("/", 1)[-1] if path else ""
    return f"{format_name} {last}".strip()


def _seconds(interval: str) -> float:
    number, _, unit = interval.partition(" ")
    return int(number) / 1000 if unit.startswith("milli") else parse_seconds(interval)
