"""Enriches a stream of sales from a product catalogue, as a warehouse does when it loads facts.

Run it with `python examples/enrich_sales.py`; it works in a temporary folder and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import semistream as ss
from semistream.generator import Sales, products

PRODUCT_COUNT = 200_000
SALE_COUNT = 500_000


def main() -> None:
    """Build the catalogue, join the sales, and print a few rows."""
    with tempfile.TemporaryDirectory() as folder:
        # The master table: sorted into pages on disk once, read page by page from then on.
        master = ss.MasterTable.build(
            products(PRODUCT_COUNT, seed=1), Path(folder) / "products", key="product_id", memory="64MB"
        )
        about = master.info()
        print(f"The catalogue has {about['rows']:,} products on {about['pages']:,} pages.")

        # The stream: any iterable of Arrow record batches. Some products sell far more often than others.
        sales = Sales.of_products(PRODUCT_COUNT, seed=1).batches(10_000, SALE_COUNT)

        # The warehouse wants its own key in place of the shop's, and two columns of the product. However large the
        # catalogue is, the join stays inside its memory.
        joined = ss.join(
            sales,
            master,
            on="product_id",
            memory="16MB",
            replace={"product_id": "surrogate_key"},
            columns=["supplier_id", "sale_price"],
        )
        row_count = 0
        for batch in joined:
            if not row_count:
                print("The first rows of the warehouse:")
                for row in batch.slice(0, 3).to_pylist():
                    print("  ", {name: str(value) for name, value in row.items()})
            row_count += batch.num_rows

        stats = joined.stats
        print(f"{row_count:,} sales were enriched, {stats.cache_hits / stats.tuples_out:.0%} of them from the cache.")


if __name__ == "__main__":
    main()
