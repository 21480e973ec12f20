"""Keeps sales whose product is not in the catalogue yet, and joins them again when it is.

Run it with `python examples/late_rows.py`; it works in a temporary folder and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import semistream as ss


def main() -> None:
    """Join sales, park those of unknown products, and try them again after a merge."""
    with tempfile.TemporaryDirectory() as folder:
        catalogue = pa.table({"product_id": [1, 2, 3], "name": ["chair", "lamp", "kettle"]})
        master = ss.MasterTable.build(catalogue, Path(folder) / "products", key="product_id")

        # A null key never matches anything; product 4 is sold before the catalogue knows it.
        sales = pa.table({"sale_id": [1, 2, 3, 4, 5], "product_id": pa.array([1, 4, 3, None, 4], pa.int64())})

        # A left join keeps every sale; without a product its columns are null.
        joined = ss.join(sales, master, on="product_id", how="left", memory="8MB").read_all().sort_by("sale_id")
        print("All sales:   ", joined.to_pylist())

        # An anti join gives only the sales without a product. Null keys can never be answered, so they are dropped.
        late = ss.join(sales, master, on="product_id", how="anti", memory="8MB").read_all()
        late = late.filter(pc.is_valid(late["product_id"]))
        print("Parked:      ", late.sort_by("sale_id").to_pylist())

        # The product arrives, and what was parked is joined again.
        master.merge(upserts=pa.table({"product_id": [4], "name": ["bicycle"]}))
        again = ss.join(late, master, on="product_id", memory="8MB").read_all().sort_by("sale_id")
        print("Joined later:", again.to_pylist())


if __name__ == "__main__":
    main()
