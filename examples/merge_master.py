"""Merges changes into a master table while readers of the version before go on.

Run it with `python examples/merge_master.py`; it works in a temporary folder and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

import semistream as ss
from semistream.store.contract import MasterStore


def main() -> None:
    """Build a table, merge into it, and ask both versions."""
    with tempfile.TemporaryDirectory() as folder:
        prices = pa.table({"product_id": pa.array(range(1, 10_001)), "price": pa.array([10.0] * 10_000)})
        master = ss.MasterTable.build(prices, Path(folder) / "prices", key="product_id")
        before = master.open()  # shows version 1 for as long as it is open

        # Product 2 gets a new price, product 10001 is new, product 3 is gone. Only the pages that hold these keys are
        # written anew; all others are shared by both versions.
        version = master.merge(
            upserts=pa.table({"product_id": [2, 10_001], "price": [12.5, 99.0]}),
            deletes=pa.table({"product_id": [3]}),
        )
        print(f"The merge made version {version} of {master.info()['versions']}.")

        print("Version 1 still says:", _prices(before))
        with master.open() as after:
            print("Version 2 says:      ", _prices(after))
        before.close()

        # Old versions stay until they are vacuumed, so that a batch can be replayed with the rows it saw first. What
        # was current within the last ten minutes would stay, too, if we did not say that nobody looks for it any more.
        freed = master.vacuum(keep_versions=1, keep_for=0)
        print(f"Vacuuming removed version {freed['versions'][0]} and {freed['bytes']:,} bytes.")


def _prices(store: MasterStore) -> dict[int, float | None]:
    """Look four products up, by a join like any other."""
    orders = pa.table({"product_id": [1, 2, 3, 10_001]})
    rows = ss.join(orders, store, on="product_id", how="left", memory="8MB").read_all()
    return dict(sorted(zip(rows["product_id"].to_pylist(), rows["price"].to_pylist(), strict=True)))


if __name__ == "__main__":
    main()
