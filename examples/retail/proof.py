"""Proves that the warehouse is what a batch join of all orders gives, with the customers of the version of each batch.

Three things are compared, and none of them comes from the pipeline: the orders that were sent, the products that were
published, and the history of each customer, written down by the shop itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import semistream as ss


class NotProvedError(Exception):
    """The warehouse is not what it should be; the message says in what."""


@dataclass(frozen=True)
class Proof:
    """What was compared."""

    orders: int
    parked: int
    """Orders whose customer has not come yet."""
    versions: int
    """How many versions of the customers orders were joined with."""
    pinned: int
    """Orders whose customer is that of the version to which their micro-batch is pinned."""


def prove(
    orders: pa.Table,
    products: pa.Table,
    history: pa.Table,
    rows: pa.Table,
    parked: int,
    customers: ss.MasterTable,
    pins: Mapping[int, int],
    strangers_from: int,
) -> Proof:
    """Compare everything; raises NotProvedError at the first difference."""
    stranger = pc.greater_equal(orders["customer_id"], strangers_from)
    wanted = orders.filter(pc.invert(stranger))
    _every_order_once(wanted, rows)
    strangers = orders.num_rows - wanted.num_rows
    _check(parked == strangers, f"{parked:,} orders are parked, but {strangers:,} have no customer")
    rows = rows.sort_by("order_id")
    _products_are_exact(wanted, products, rows)
    _customers_were_so(history, rows)
    versions = {version: _as_of_version(customers, version, history) for version in sorted(set(pins.values()))}
    pinned = _customers_are_of_the_pinned_version(orders, rows, pins, versions)
    return Proof(orders.num_rows, parked, len(versions), pinned)


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NotProvedError(f"{otherwise}.")


def _every_order_once(wanted: pa.Table, rows: pa.Table) -> None:
    counts = np.bincount(rows["order_id"].to_numpy(), minlength=int(pc.max(wanted["order_id"]).as_py()) + 1)
    lost = int((counts[wanted["order_id"].to_numpy()] == 0).sum())
    twice = int((counts > 1).sum())
    _check(not lost and not twice, f"{lost:,} orders are lost, and {twice:,} are there more than once")


def _products_are_exact(orders: pa.Table, products: pa.Table, rows: pa.Table) -> None:
    """Compare with PyArrow's join of orders and products."""
    wanted = orders.join(products, "sku", join_type="inner").sort_by("order_id")
    wanted = wanted.append_column("total", pc.multiply(wanted["quantity"].cast(pa.float64()), wanted["price"]))
    _check(wanted.num_rows == rows.num_rows, f"{rows.num_rows:,} orders were written, not {wanted.num_rows:,}")
    for name in ("order_id", "customer_id", "sku", "quantity", "product", "category", "price", "total"):
        same = pc.fill_null(pc.equal(wanted[name], rows[name]), False)
        _check(pc.all(same).as_py(), f"the column {name} is wrong in {pc.sum(pc.invert(same)).as_py():,} orders")


def _customers_were_so(history: pa.Table, rows: pa.Table) -> None:
    """See that each row has a customer as it has been at some time."""
    keys = ["customer_id", "revision", "segment", "city"]
    found = rows.select(keys).group_by(keys).aggregate([]).join(history, keys, join_type="left anti")
    _check(found.num_rows == 0, f"{found.num_rows:,} combinations of a customer's columns have never been there")


def _as_of_version(customers: ss.MasterTable, version: int, history: pa.Table) -> pa.Table:
    """Return the customers of a version, which must be those after one of the shop's transactions."""
    ids = pa.table({"customer_id": np.unique(history["customer_id"].to_numpy())})
    with customers.open(version) as store:
        mirrored = ss.join(ids, store, on="customer_id", how="inner", memory="32MB").read_all().sort_by("customer_id")
    newest = int(pc.max(mirrored["revision"]).as_py())
    wanted = _as_of(history, newest).select(["customer_id", "revision", "segment", "city"])
    mirrored = mirrored.select(wanted.column_names)
    same = wanted.num_rows == mirrored.num_rows and all(
        wanted[name].combine_chunks().equals(mirrored[name].combine_chunks().cast(wanted[name].type))
        for name in wanted.column_names
    )
    _check(same, f"version {version} of the customers is not the table after transaction {newest:,}")
    return wanted


def _as_of(history: pa.Table, revision: int) -> pa.Table:
    """Return each customer's newest row up to a revision, in the order of customers."""
    known = history.filter(pc.less_equal(history["revision"], revision))
    newest = known.group_by("customer_id").aggregate([("revision", "max")]).rename_columns(["customer_id", "revision"])
    return newest.join(history, ["customer_id", "revision"]).sort_by("customer_id")


def _customers_are_of_the_pinned_version(
    orders: pa.Table, rows: pa.Table, pins: Mapping[int, int], versions: Mapping[int, pa.Table]
) -> int:
    """See that no row is older or newer than the version to which its micro-batch is pinned, and count the rows.

    An order that has waited for its product may have met its customer in an earlier micro-batch.
    """
    waited = orders["from_collection"].to_numpy()[rows["order_id"].to_numpy()]
    batches, customer, revision = (rows[name].to_numpy() for name in ("batch", "customer_id", "revision"))
    checked = 0
    for batch in np.unique(batches).tolist():
        if batch not in pins:
            continue
        of_batch = batches == batch
        state = versions[pins[batch]]
        known, current = state["customer_id"].to_numpy(), state["revision"].to_numpy()
        at = np.searchsorted(known, customer[of_batch])
        there = (at < len(known)) & (known[np.minimum(at, len(known) - 1)] == customer[of_batch])
        _check(bool(there.all()), f"micro-batch {batch} has orders of customers who are not in its version")
        right = np.where(waited[of_batch], revision[of_batch] <= current[at], revision[of_batch] == current[at])
        _check(
            bool(right.all()),
            f"{int((~right).sum()):,} orders of micro-batch {batch} have a customer of another version",
        )
        checked += int(of_batch.sum())
    return checked
