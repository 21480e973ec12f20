"""What the Python workers of a pipeline need in memory, told at the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from semistream.core.budget import format_bytes
from semistream.pipeline.description import PipelineDescription
from semistream.pipeline.sources.kinds import kind_of
from semistream.pipeline.star import joins_of, memory_of_join
from semistream.spark.spark_session import arrow_batch_bytes

WORKER_BASE_BYTES = 270_000_000
"""What a Python worker holds before its first row: the interpreter, Arrow and the compiled kernels."""
_GROWTH = 1.15
"""A worker grows by so many times its budget at most, and by two Arrow batches."""

_MIN_OVERHEAD_BYTES = 384 << 20
_OVERHEAD_SHARE = 0.1


@dataclass(frozen=True)
class WorkerMemory:
    """The memory of all Python workers: slots × Python operators × (base + 1.15 × budget + two Arrow batches)."""

    slots: int
    operators: int
    budget_bytes: int
    """The budget of each worker."""

    @property
    def total_bytes(self) -> int:
        """Bytes of all workers together."""
        return self.slots * self.operators * self.worker_bytes

    @property
    def worker_bytes(self) -> int:
        """Bytes of one worker."""
        return WORKER_BASE_BYTES + int(_GROWTH * self.budget_bytes) + 2 * arrow_batch_bytes(self.budget_bytes)

    def __str__(self) -> str:
        workers = "1 Python worker" if self.slots * self.operators == 1 else f"{self.slots * self.operators} workers"
        return (
            f"{format_bytes(self.total_bytes)} for {workers} of {format_bytes(self.worker_bytes)}, with a budget of "
            f"{format_bytes(self.budget_bytes)} each"
        )


def needed_memory(spark: SparkSession, description: PipelineDescription) -> WorkerMemory:
    """Return what the workers of a pipeline need; a Python source needs workers of its own, and so does a database."""
    sources = sum(kind_of(source.format).uses_python for source in description.sources)
    sources += description.sink.table is not None
    slots = max(1, spark.sparkContext.defaultParallelism)
    return WorkerMemory(slots, joins_of(description) + sources, memory_of_join(description))


def memory_warning(spark: SparkSession, needed: WorkerMemory) -> str | None:
    """Return one sentence if the workers may not find the memory they need, else None."""
    context = spark.sparkContext
    master = context.master or ""
    if master.startswith("local") and not master.startswith("local-cluster"):
        free = _free_bytes()
        if free is None or needed.total_bytes <= free:
            return None
        return (
            f"The workers need {format_bytes(needed.total_bytes)}, but only {format_bytes(free)} is free on this "
            f"machine: lower [enrich] memory, or give fewer slots by master in [spark]."
        )
    settings = dict(context.getConf().getAll())
    wanted = int(settings.get("spark.executor.cores", "1")) * needed.operators * needed.worker_bytes
    overhead = _overhead_bytes(settings)
    if wanted <= overhead:
        return None
    return (
        f"The workers of an executor need {format_bytes(wanted)}, but its overhead is {format_bytes(overhead)}: set "
        f"spark.executor.memoryOverhead in [spark]."
    )


def _overhead_bytes(settings: Mapping[str, str]) -> int:
    """Return what an executor may use beside its heap, where its Python workers live."""
    given = settings.get("spark.executor.memoryOverhead")
    if given is not None:
        return _spark_bytes(given, 1 << 20)
    executor = _spark_bytes(settings.get("spark.executor.memory", "1g"), 1)
    return max(_MIN_OVERHEAD_BYTES, int(executor * _OVERHEAD_SHARE))


def _spark_bytes(text: str, unit: int) -> int:
    """Return bytes as Spark writes them (512m, 2g); a bare number is in `unit`, what cannot be read counts as 0."""
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    text = text.strip().lower().removesuffix("b").removesuffix("i")
    number, factor = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, unit)
    return int(number) * factor if number.isdigit() else 0


def _free_bytes() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None
