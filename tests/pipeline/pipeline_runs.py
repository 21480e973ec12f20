"""Makes and runs small pipelines in tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import semistream as ss
from semistream.pipeline import PipelineDescription, read_description
from semistream.pipeline.running import RunTotals, run_pipeline
from semistream.spark.batch_progress import BatchProgress

PRODUCTS = pa.table(
    {
        "product_id": pa.array([1, 2, 3], pa.int64()),
        "name": ["pen", "ink", "nib"],
        "price": pa.array([150, 900, 75], pa.int32()),
    }
)
SCHEMA = "sale_id BIGINT, product_id BIGINT, quantity INT"


class SmallPipeline:
    """A pipeline in a folder of its own: JSON files, a master table, Parquet files; all that is there at one run."""

    def __init__(self, spark: SparkSession, folder: Path, **changes: str) -> None:
        self._spark = spark
        self.folder = folder
        self.incoming = folder / "incoming"
        self.incoming.mkdir(parents=True)
        self.parts = {
            "pipeline": 'name = "small"\ncheckpoint = "state"',
            "source": f'format = "json"\npath = "incoming"\nschema = "{SCHEMA}"\nmax_files_per_trigger = 1',
            "prepare": "",
            "enrich": 'memory = "16MB"',
            "dimension": 'table = "products"\non = "product_id"\nhow = "left"',
            "transform": "",
            "sink": 'format = "parquet"\npath = "warehouse"',
            "trigger": "available_now = true",
            **changes,
        }

    def build(self, data: pa.Table = PRODUCTS, key: str = "product_id") -> None:
        """Build the master table, or its next version."""
        ss.MasterTable.build(data, self.folder / "products", key=key)

    def arrive(self, name: str, rows: Iterable[dict[str, Any] | str]) -> Path:
        """Let a file of JSON lines arrive; a text is written as it stands."""
        file = self.incoming / name
        hidden = file.with_name(f".{name}")
        hidden.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return hidden.rename(file)

    @property
    def description(self) -> PipelineDescription:
        """What the file of the pipeline says."""
        file = self.folder / "pipeline.toml"
        heads = {"prepare": "", "dimension": "[[dimension]]", "transform": ""}
        whole = [text if text.startswith("[[") else None for text in self.parts.values()]
        texts = [
            f"{heads.get(name, f'[{name}]')}\n{text}\n" if several is None else several
            for (name, text), several in zip(self.parts.items(), whole, strict=True)
        ]
        file.write_text("\n".join(texts))
        return read_description(file)

    def run(self, callback: Callable[[BatchProgress], None] | None = None) -> RunTotals:
        """Run it to its end."""
        return run_pipeline(self.description, callback, spark=self._spark)

    def written(self) -> list[dict[str, Any]]:
        """Return the rows of the sink, sorted by the sale."""
        return sorted(self.table().to_pylist(), key=lambda row: row["sale_id"])

    def table(self) -> pa.Table:
        """Return the rows of the sink, of finished batches alone."""
        log = self.folder / "warehouse" / "_spark_metadata"
        files: list[str] = []
        for entry in sorted(log.iterdir() if log.is_dir() else []):
            if entry.name.isdigit():
                lines = entry.read_text().splitlines()[1:]
                files += [json.loads(line)["path"].removeprefix("file://") for line in lines]
        tables = [pq.read_table(file) for file in files]
        return pa.concat_tables([table for table in tables if table.num_rows])


def sale(number: int, product: int | None, quantity: int = 1) -> dict[str, Any]:
    """Return a sale."""
    return {"sale_id": number, "product_id": product, "quantity": quantity}
