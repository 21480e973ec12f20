"""The shop: its products, its customers, who change all the time, and its orders. It remembers all of them.

Some orders come before their customer has registered, some are for products of a collection that is published later,
and a few are from customers who never come.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PRODUCTS, COLLECTION = 200_000, 500
"""So many products are published at the start, and so many come later."""
CUSTOMERS = 50_000
NOBODY = 10_000_000
"""Customers from this number on never come."""
TOPIC = "orders"
SEGMENTS = ("new", "regular", "gold", "business")
CITIES = ("Auckland", "Hamilton", "Wellington", "Napier", "Nelson", "Dunedin")
_TICKS_PER_SECOND = 10
_CHANGED_PER_TICK, _REGISTERED_PER_TICK = 20, 3
_AHEAD = 60
"""So many of the customers who register next may have ordered already."""
Int64s = npt.NDArray[np.int64]


def products(first: int, count: int) -> pa.Table:
    """Return products by their numbers; those from PRODUCTS on are the collection."""
    numbers = np.arange(first, first + count)
    return pa.table(
        {
            "sku": skus(numbers),
            "product": pa.array([f"product {number}" for number in numbers.tolist()]),
            "category": pa.array([f"category {number % 40}" for number in numbers.tolist()]),
            "price": pa.array((numbers * 7919 % 20_000 + 99) / 100),
        }
    )


def skus(numbers: Int64s) -> pa.Array:
    """Return the keys of products."""
    return pa.array([f"SKU-{number:07d}" for number in numbers.tolist()])


@dataclass
class Sent:
    """Orders as columns; the number of an order is its position."""

    customer: list[Int64s] = field(default_factory=list)
    product: list[Int64s] = field(default_factory=list)
    quantity: list[Int64s] = field(default_factory=list)
    count: int = 0

    def add(self, customer: Int64s, product: Int64s, quantity: Int64s) -> None:
        """Remember orders that were sent."""
        self.customer.append(customer)
        self.product.append(product)
        self.quantity.append(quantity)
        self.count += len(customer)

    def table(self) -> pa.Table:
        """Return all orders."""
        product = np.concatenate(self.product)
        return pa.table(
            {
                "order_id": np.arange(self.count),
                "customer_id": np.concatenate(self.customer),
                "sku": skus(product),
                "quantity": pa.array(np.concatenate(self.quantity), pa.int32()),
                "from_collection": product >= PRODUCTS,
            }
        )


@dataclass
class History:
    """All that customers have ever been: one row for each change, the first ones as they were loaded."""

    customer: list[int] = field(default_factory=list)
    revision: list[int] = field(default_factory=list)
    segment: list[str] = field(default_factory=list)
    city: list[str] = field(default_factory=list)

    def add(self, rows: list[tuple[int, int, str, str]]) -> None:
        """Add rows as they are in the database after a transaction."""
        for values, column in zip(zip(*rows, strict=True), self._columns(), strict=True):
            column.extend(values)

    def table(self) -> pa.Table:
        """Return the history."""
        names = ("customer_id", "revision", "segment", "city")
        return pa.table(dict(zip(names, self._columns(), strict=True)))

    def _columns(self) -> tuple[list[Any], ...]:
        return (self.customer, self.revision, self.segment, self.city)


class Customers:
    """The table of customers in PostgreSQL; each transaction gives its rows a revision that is one greater."""

    def __init__(self, connect: Callable[[], Any], seed: int = 1) -> None:
        self._connection = connect()
        self._random = np.random.default_rng(seed)
        self.history = History()
        self.registered = CUSTOMERS
        self.changes = 0
        self._revision = 0

    def load(self) -> None:
        """Make the table with the first customers."""
        rows = [self._row(number) for number in range(CUSTOMERS)]
        self._connection.execute(
            "CREATE TABLE customers (customer_id bigint PRIMARY KEY, revision bigint NOT NULL, segment text NOT NULL, "
            "city text NOT NULL, changed_at timestamptz NOT NULL DEFAULT now())"
        )
        self._connection.execute("CREATE INDEX ON customers (changed_at)")
        into = "COPY customers (customer_id, revision, segment, city) FROM STDIN"
        with self._connection.cursor().copy(into) as copy:
            for row in rows:
                copy.write_row(row)
        self._connection.execute("ANALYZE customers")
        self.history.add(rows)

    def change(self, registered: int = _REGISTERED_PER_TICK) -> None:
        """Change some customers and register some new ones, in one transaction."""
        self._revision += 1
        changed = np.unique(self._random.integers(self.registered, size=_CHANGED_PER_TICK)).tolist()
        changed += range(self.registered, self.registered + registered)
        rows = [self._row(number) for number in changed]
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO customers (customer_id, revision, segment, city) VALUES (%s, %s, %s, %s) "
                "ON CONFLICT (customer_id) DO UPDATE SET revision = excluded.revision, segment = excluded.segment, "
                "city = excluded.city, changed_at = now()",
                rows,
            )
        self.history.add(rows)
        self.registered += registered
        self.changes += len(rows)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _row(self, number: int) -> tuple[int, int, str, str]:
        mixed = number * 31 + self._revision * 17
        return number, self._revision, SEGMENTS[mixed % len(SEGMENTS)], CITIES[mixed // 3 % len(CITIES)]


class Shop:
    """Sends orders to Kafka and changes customers, in a thread of its own, ten times a second."""

    def __init__(self, producer: Any, customers: Customers, rate: int) -> None:
        self._producer = producer
        self._customers = customers
        self._rate = rate
        self._random = np.random.default_rng(7)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shop", daemon=True)
        self.sent = Sent()
        self.strangers = 0
        """How many orders are from customers who never come."""
        self.published = False
        """Whether the collection can be bought already."""
        self.early = 0
        """How many orders came before their customer had registered or their product was published."""
        self.error: BaseException | None = None

    def open(self) -> None:
        """Begin to sell."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more orders."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        """Take no more orders, and let everybody register who has ordered."""
        self.stop()
        if self.error is not None:
            raise self.error
        self._producer.flush()
        self._customers.change(registered=_AHEAD)

    def _run(self) -> None:
        try:
            began, tick = time.monotonic(), 0
            while not self._stop.is_set():
                tick += 1
                self._sell(int(tick * self._rate / _TICKS_PER_SECOND) - self.sent.count)
                self._customers.change()
                self._stop.wait(max(0.0, began + tick / _TICKS_PER_SECOND - time.monotonic()))
        except BaseException as error:
            self.error = error

    def _sell(self, count: int) -> None:
        random, registered = self._random, self._customers.registered
        customer = _favourites(random, registered, count)
        early = random.random(count) < 0.02
        customer[early] = registered + random.integers(_AHEAD, size=int(early.sum()))
        strangers = random.random(count) < 0.001
        customer[strangers] = NOBODY + random.integers(1_000, size=int(strangers.sum()))
        self.strangers += int(strangers.sum())
        product = _favourites(random, PRODUCTS, count) * 7919 % PRODUCTS
        coming = random.random(count) < 0.01
        product[coming] = PRODUCTS + random.integers(COLLECTION, size=int(coming.sum()))
        self.early += int((early | (coming & ~self.published)).sum())
        quantity = random.integers(1, 5, size=count)
        first = self.sent.count
        rows = zip(customer.tolist(), product.tolist(), quantity.tolist(), strict=True)
        for number, (who, what, how_many) in enumerate(rows, first):
            order = {"order_id": number, "customer_id": who, "sku": f"SKU-{what:07d}", "quantity": how_many}
            self._producer.send(TOPIC, json.dumps(order).encode())
        self.sent.add(customer, product, quantity)


def _favourites(random: np.random.Generator, count: int, size: int) -> Int64s:
    """Return numbers below `count`, small ones far more often (Zipf's law, exponent 1)."""
    return np.minimum(count - 1, (float(count) ** random.random(size)).astype(np.int64) - 1)
