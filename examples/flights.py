"""Enriches the flights that left New York in 2013 with what is known about their planes.

Run it with `python examples/flights.py`; it needs the extra `flights`, works in a temporary folder and leaves nothing
behind.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import semistream as ss
from semistream_lab.workload import flights


def main() -> None:
    """Build the table of planes, join the flights, and say who made the planes."""
    with tempfile.TemporaryDirectory() as folder:
        # The key is a string: pages are ranges of its hash, and every match is verified on the real key.
        planes = ss.MasterTable.build(flights.planes(), Path(folder) / "planes", key=flights.PLANE_KEY)
        print(f"There are {planes.info()['rows']:,} planes.")

        # A left join keeps the flights without a tail number and those whose plane nobody knows.
        stream = flights.flights().select(["carrier", "flight", "tailnum", "origin", "dest", "time_hour"])
        joined = ss.join(
            stream.to_batches(max_chunksize=10_000),
            planes,
            on="tailnum",
            how="left",
            memory="8MB",
            columns=["manufacturer", "model", "seats"],
        )
        flown = pa.Table.from_batches(joined, schema=joined.schema)

        known = flown.filter(pc.is_valid(flown["manufacturer"]))
        print(f"{known.num_rows:,} of {flown.num_rows:,} flights have a known plane.")
        print(f"{joined.stats.null_keys:,} have no tail number, {joined.stats.absent:,} one that is not in the table.")

        makers = known.group_by("manufacturer").aggregate([([], "count_all"), ("seats", "sum")])
        print("Who made the planes of most flights:")
        for maker in makers.sort_by([("count_all", "descending")]).slice(0, 3).to_pylist():
            print(f"  {maker['manufacturer']:<18} {maker['count_all']:>7,} flights, {maker['seats_sum']:>10,} seats")


if __name__ == "__main__":
    main()
