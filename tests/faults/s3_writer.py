"""What tests of tables in S3 run in processes of their own: merges and pins, one after the other."""

from __future__ import annotations

import sys

import pyarrow as pa

from semistream.master_table import MasterTable
from semistream.store.tables import table_at


def rows_of_commit(writer: int, commit: int) -> pa.Table:
    """Return the rows of one commit of a writer: ten keys that only this writer uses."""
    keys = [1000 * writer + key for key in range(10)]
    return pa.table({"id": keys, "v": [f"{writer}/{commit}"] * 10, "n": [commit] * 10})


def main(address: str, what: str, writer: int, count: int) -> None:
    """Do it `count` times, and say after each that it was done."""
    for commit in range(1, count + 1):
        if what == "merge":
            print(MasterTable(address).merge(rows_of_commit(writer, commit)), flush=True)
        else:
            print(table_at(address).pin("query", commit), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
