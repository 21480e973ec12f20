"""Tables of databases as sinks, without Spark: staging, ledger, upserts, odd values and lost answers."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - everybody calls it so

from semistream.core.errors import InvalidSettingError, RowTooLargeError, SinkUnavailableError, UnsupportedValueError
from semistream.pipeline.sinks.contract import Batch
from semistream.pipeline.sinks.database import literals
from semistream.pipeline.sinks.database.staging_task import warehouse_at
from semistream.pipeline.sinks.database.warehouse import (
    LEDGER,
    StagedColumn,
    StagedRowsLostError,
    TargetColumn,
    Upsert,
    Warehouse,
)
from semistream.store.database.address import parse_address
from servers.lost_answers import LostAnswers
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer

SALES = [("id", "bigint"), ("amount", "bigint"), ("version", "bigint")]
Server = PostgresqlServer | MariadbServer


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def at(server: Server, request: pytest.FixtureRequest) -> Iterator[Callable[..., Warehouse]]:
    """Return what opens a table of a name of its own; the ledger is empty."""
    opened = []

    def open_table(table: str = "", **options: Any) -> Warehouse:
        name = table or f"t{abs(hash(request.node.name)) % 10**9}"
        text = server.address("T", retry_for=5, **options).replace("key=id&", "").replace("&key=id", "")
        opened.append(warehouse_at(replace(parse_address(text, needs_key=False), table=name)))
        return opened[-1]

    yield open_table
    for warehouse in opened:
        _run(warehouse, lambda c, w=warehouse: w.drop(c, [w.address.table, *w.tables_like(c, "semistream_")]))
        warehouse.sessions.close()


def _run(warehouse: Warehouse, work: Callable[[Any], Any]) -> Any:
    return warehouse.sessions.run(lambda c: (warehouse.begin(c), work(c))[1])


def _rows(warehouse: Warehouse, columns: str = "*") -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = _run(
        warehouse, lambda c: warehouse.execute(c, f"SELECT {columns} FROM {warehouse.table}")
    )
    return sorted(found, key=repr)


def _batch(number: int, query: str = "q1") -> Batch:
    return Batch("sales", query, number, "/state")


def _write(
    warehouse: Warehouse, batch: Batch, rows: pa.RecordBatch, columns: list[StagedColumn], upsert: Upsert | None = None
) -> None:
    """Write a batch of two chunks, with a third one that nobody names."""
    staging = f"semistream_x_{batch.number}"

    def stage(c: Any) -> None:
        warehouse.drop(c, [staging])
        warehouse.make_staging(c, staging, columns)
        half = rows.num_rows // 2
        warehouse.stage(c, staging, 1, rows.slice(0, half))
        warehouse.stage(c, staging, 2, rows.slice(half))
        warehouse.stage(c, staging, 3, rows)

    _run(warehouse, stage)
    half = rows.num_rows // 2
    chunks = {1: half, 2: rows.num_rows - half}
    warehouse.sessions.run(lambda c: warehouse.commit(c, batch, staging, chunks, columns, upsert))
    _run(warehouse, lambda c: warehouse.drop(c, [staging]))


def _made(warehouse: Warehouse, key: tuple[str, ...] = ()) -> list[StagedColumn]:
    def make(c: Any) -> None:
        warehouse.ensure_ledger(c)
        warehouse.create(c, SALES, key)

    _run(warehouse, make)
    return [StagedColumn(name, kind) for name, kind in SALES]


def _sales(*rows: tuple[int, int, int | None]) -> pa.RecordBatch:
    columns = [pa.array(values, pa.int64()) for values in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, [name for name, _ in SALES])


def test_a_batch_is_written_once_and_only_what_was_named_of_it(at: Callable[..., Warehouse]) -> None:
    warehouse = at()
    columns = _made(warehouse)
    rows = _sales((1, 10, 1), (2, 20, 1), (2, 20, 1), (3, 30, None))
    for _ in range(2):
        _write(warehouse, _batch(0), rows, columns)
    assert _rows(warehouse) == sorted([(1, 10, 1), (2, 20, 1), (2, 20, 1), (3, 30, None)], key=repr)
    _write(warehouse, _batch(1), _sales((4, 40, 1)), columns)
    _write(warehouse, _batch(0), _sales((9, 9, 9)), columns)
    assert len(_rows(warehouse)) == 5
    _write(warehouse, _batch(0, "q2"), _sales((5, 50, 1)), columns)
    assert len(_rows(warehouse)) == 6
    written = {each.query: each for each in _run(warehouse, warehouse.written)}
    assert (written["q1"].newest, written["q2"].newest) == (1, 0)
    assert (written["q1"].checkpoint, written["q1"].pipeline) == ("/state", "sales")
    elsewhere = _run(at("another_table"), at("another_table").written)
    of_ours = {(each.query, each.pipeline, each.newest) for each in elsewhere if each.query in ("q1", "q2")}
    assert of_ours == {("q1", "", 1), ("q2", "", 0)}, "the server's ledger may know other queries, too"


def test_an_upsert_updates_inserts_and_leaves_newer_rows_alone(at: Callable[..., Warehouse]) -> None:
    warehouse = at()
    columns = _made(warehouse, key=("id",))
    upsert = Upsert(("id",), "version")
    _write(warehouse, _batch(0), _sales((1, 10, 5), (2, 20, 5), (3, 30, None)), columns, upsert)
    _write(warehouse, _batch(1), _sales((1, 11, 6), (2, 21, 4), (3, 31, 1), (4, 40, 1)), columns, upsert)
    wanted = [(1, 11, 6), (2, 20, 5), (3, 31, 1), (4, 40, 1)]
    assert _rows(warehouse) == wanted
    _write(warehouse, _batch(2), _sales((1, 12, 6), (2, 22, None)), columns, upsert)
    assert _rows(warehouse) == [(1, 12, 6), *wanted[1:]], "an equal one is newer, and one without an order is older"
    _write(warehouse, _batch(3), _sales((1, 13, 1)), columns, Upsert(("id",), None))
    assert _rows(warehouse)[0] == (1, 13, 1)


@pytest.mark.parametrize("lost", [b"COMMIT", b"INSERT INTO "])
def test_a_commit_whose_answer_is_lost_leaves_one_copy(
    server: Server, at: Callable[..., Warehouse], lost: bytes
) -> None:
    direct = at()
    columns = _made(direct)
    with LostAnswers(server.port, lost) as proxy:
        far = warehouse_at(replace(direct.address, port=proxy.port))
        staging = "semistream_x_7"
        rows = _sales((1, 10, 1), (2, 20, 1))

        def stage(c: Any) -> None:
            direct.drop(c, [staging])
            direct.make_staging(c, staging, columns)
            direct.stage(c, staging, 1, rows)

        _run(direct, stage)
        far.sessions.run(lambda c: far.commit(c, _batch(7), staging, {1: 2}, columns, None))
        assert proxy.lost == 1
        assert far.sessions.retries >= 1
        far.sessions.close()
    assert _rows(direct) == [(1, 10, 1), (2, 20, 1)]


def test_rows_that_the_server_has_lost_are_noticed_before_the_commit(
    at: Callable[..., Warehouse],
) -> None:
    warehouse = at()
    columns = _made(warehouse)
    _run(warehouse, lambda c: warehouse.make_staging(c, "semistream_x_0", columns))
    with pytest.raises(StagedRowsLostError):
        warehouse.sessions.run(lambda c: warehouse.commit(c, _batch(0), "semistream_x_0", {1: 2}, columns, None))
    assert not _run(warehouse, lambda c: warehouse.has_batch(c, _batch(0)))
    assert _rows(warehouse) == []


def test_several_pipelines_may_make_the_ledger_at_once(at: Callable[..., Warehouse]) -> None:
    warehouse = at()
    for _ in range(5):
        _run(warehouse, lambda c: warehouse.drop(c, [LEDGER]))
        with ThreadPoolExecutor(8) as threads:
            for made in [threads.submit(_run, warehouse, warehouse.ensure_ledger) for _ in range(8)]:
                made.result()


def test_the_ledger_stays_small(at: Callable[..., Warehouse]) -> None:
    warehouse = at()
    columns = _made(warehouse)
    for number in (0, 1, 500):
        _write(warehouse, _batch(number), _sales((number, 0, 0)), columns)
    entries = _run(warehouse, lambda c: warehouse.execute(c, f"SELECT batch FROM {warehouse.beside(LEDGER)}"))
    assert entries == [(500,)]


ODD_NAME = 'a"b`c%s; DROP TABLE x --'
MOMENT = datetime.datetime(2026, 3, 29, 1, 30, 0, 123456)
ODD: dict[str, tuple[T.DataType, pa.DataType, list[Any]]] = {
    "i8": (T.ByteType(), pa.int8(), [-128, 127, None]),
    "i64": (T.LongType(), pa.int64(), [-(2**63), 2**63 - 1, None]),
    "flag": (T.BooleanType(), pa.bool_(), [True, False, None]),
    "f32": (T.FloatType(), pa.float32(), [1.5, -(2.0**-126), None]),
    "f64": (T.DoubleType(), pa.float64(), [0.1, 1.7976931348623157e308, None]),
    "d38": (
        T.DecimalType(38, 10),
        pa.decimal128(38, 10),
        [decimal.Decimal("1234567890123456789012345678.0123456789"), decimal.Decimal("0.0000000001"), None],
    ),
    "text": (T.StringType(), pa.string(), ["a\n\\.\n\"b\",'c'\\N\t%s \U0001f600 ", "", None]),
    "bytes": (T.BinaryType(), pa.binary(), [bytes(range(256)), b"", None]),
    "day": (T.DateType(), pa.date32(), [datetime.date(1000, 1, 1), datetime.date(9999, 12, 31), None]),
    "moment": (T.TimestampType(), pa.timestamp("us", "Europe/Berlin"), [MOMENT, MOMENT.replace(year=2037), None]),
    "wall": (T.TimestampNTZType(), pa.timestamp("us"), [MOMENT, MOMENT.replace(year=1000), None]),
    ODD_NAME: (T.LongType(), pa.int64(), [1, 2, 3]),
}


def test_odd_values_and_names_arrive_as_they_are(at: Callable[..., Warehouse]) -> None:
    warehouse = at('odd %s `"; table')
    kinds = [(name, warehouse.new_type(spark_type)) for name, (spark_type, _, _) in ODD.items()]
    assert all(kinds)

    def make(c: Any) -> Any:
        warehouse.ensure_ledger(c)
        warehouse.create(c, kinds, ())
        return warehouse.described(c)

    there = _run(warehouse, make)
    assert [column.name for column in there.columns] == list(ODD)
    columns = [warehouse.staged(ODD[column.name][0], column) for column in there.columns]
    arrays = []
    for _, arrow_type, values in ODD.values():
        if pa.types.is_timestamp(arrow_type) and arrow_type.tz:
            arrays.append(pa.array(values, pa.timestamp("us", "UTC")).cast(arrow_type))
        else:
            arrays.append(pa.array(values, arrow_type))
    rows = pa.RecordBatch.from_arrays(arrays, list(ODD))
    _write(warehouse, _batch(0), rows.slice(1), columns)
    _write(warehouse, _batch(1), rows.slice(0, 1), columns)
    number = list(ODD).index(ODD_NAME)
    found = sorted(_rows(warehouse), key=lambda row: row[number])
    for place, (name, (_, _, values)) in enumerate(ODD.items()):
        got = [row[place] for row in found]
        if name == "moment":
            got = [value.replace(tzinfo=None) if value is not None else None for value in got]
        if name == "flag":
            got = [None if value is None else bool(value) for value in got]
        if name == "f32":
            assert got[2] is None
            assert all(math.isclose(one, other, rel_tol=1e-5) for one, other in zip(got[:2], values[:2], strict=True))
        else:
            assert got == values, name


def test_values_that_no_column_can_hold_are_one_sentence(server: Server, at: Callable[..., Warehouse]) -> None:
    warehouse = at()
    kinds = {"id": pa.int64(), "text": pa.string(), "f": pa.float64(), "day": pa.date32()}
    spark_types = (T.LongType(), T.StringType(), T.DoubleType(), T.DateType())
    columns = [
        StagedColumn(name, warehouse.new_type(kind) or "") for name, kind in zip(kinds, spark_types, strict=True)
    ]
    _run(warehouse, lambda c: warehouse.make_staging(c, "semistream_x_0", columns))

    def stage(*values: Any) -> None:
        arrays = [pa.array([value], kind) for value, kind in zip(values, kinds.values(), strict=True)]
        rows = pa.RecordBatch.from_arrays(arrays, list(kinds))
        _run(warehouse, lambda c: warehouse.stage(c, "semistream_x_0", 1, rows))

    if isinstance(server, PostgresqlServer):
        with pytest.raises(UnsupportedValueError, match="'text' has the character NUL"):
            stage(1, "a\0b", None, None)
        stage(1, "a", math.nan, None)
    else:
        stage(1, "a\0b", None, None)
        with pytest.raises(UnsupportedValueError, match="'f' is NaN or infinite"):
            stage(1, "a", math.nan, None)
        with pytest.raises(RowTooLargeError, match="max_allowed_packet"):
            stage(1, "x" * 20_000_000, None, None)
    # Days that Python does not have.
    with pytest.raises(UnsupportedValueError, match="'day' is before the year 1"):
        literals.plain_text("day", pa.array([-800_000], pa.int32()).cast(pa.date32()))
    far = pa.array([2_932_897], pa.int32()).cast(pa.date32())
    rows = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["a"]), pa.array([0.5]), far], list(kinds))
    if isinstance(server, PostgresqlServer):
        _run(warehouse, lambda c: warehouse.stage(c, "semistream_x_0", 1, rows))
    else:
        with pytest.raises(SinkUnavailableError, match="refuses a value in the column 'day'"):
            _run(warehouse, lambda c: warehouse.stage(c, "semistream_x_0", 1, rows))


def test_names_that_the_server_would_change_or_refuse_are_told(server: Server, at: Callable[..., Warehouse]) -> None:
    warehouse = at()
    is_postgresql = isinstance(server, PostgresqlServer)
    for fits in ("x" * 63, "ü" * (31 if is_postgresql else 64), "select", "with a.dot", "tab\there"):
        warehouse.check_name("column", fits)
        made = at(f"named_{abs(hash(fits)) % 10**9}")
        there = _run(made, lambda c, w=made, n=fits: (w.create(c, [(n, "bigint")], ()), w.described(c))[1])
        assert [column.name for column in there.columns] == [fits]
    for longer in ("x" * (64 if is_postgresql else 65), *(["ü" * 32] if is_postgresql else ["x ", "\U0001f600"])):
        with pytest.raises(InvalidSettingError, match="rename it"):
            warehouse.check_name("column", longer)


KEYS = {
    "postgresql": {
        "char(9)": "make it varchar",
        'varchar(9) COLLATE "blind"': "not deterministic",
        "varchar(9)": None,
        "uuid": None,
    },
    "mariadb": {
        "char(9) COLLATE utf8mb4_nopad_bin": "make it varchar",
        "binary(9)": "make it varbinary",
        "varchar(9) COLLATE utf8mb4_general_ci": "compared by utf8mb4_general_ci",
        "varchar(9) COLLATE utf8mb4_bin": "compared by utf8mb4_bin",
        "varchar(9) COLLATE utf8mb4_nopad_bin": None,
        "varbinary(9)": None,
        "bigint": None,
    },
}


def test_keys_that_the_server_takes_for_equal_are_known(server: Server, at: Callable[..., Warehouse]) -> None:
    warehouse = at()
    is_postgresql = isinstance(server, PostgresqlServer)
    if is_postgresql:
        blind = "CREATE COLLATION IF NOT EXISTS blind (provider = icu, locale = 'und', deterministic = false)"
        _run(warehouse, lambda c: warehouse.execute(c, blind))
    kinds = KEYS["postgresql" if is_postgresql else "mariadb"]
    columns = [(f"c{number}", kind) for number, kind in enumerate(kinds)]
    there = _run(warehouse, lambda c: (warehouse.create(c, columns, ()), warehouse.described(c))[1])
    for column, sentence in zip(there.columns, kinds.values(), strict=True):
        assert (sentence is None) == (column.blurs is None), column
        assert sentence is None or sentence in (column.blurs or "")


def test_a_target_without_transactions_is_known(server: Server, at: Callable[..., Warehouse]) -> None:
    if isinstance(server, PostgresqlServer):
        view = at("a_view")
        _run(view, lambda c: view.execute(c, "CREATE OR REPLACE VIEW a_view AS SELECT 1 AS id"))
        with pytest.raises(InvalidSettingError, match="is a view, or something else"):
            _run(view, view.described)
        _run(view, lambda c: view.execute(c, "DROP VIEW a_view"))
        return
    for engine, is_transactional in (("MyISAM", False), ("Aria", False), ("InnoDB", True)):
        table = at(f"of_{engine}")
        _run(table, lambda c, t=table, e=engine: t.execute(c, f"CREATE TABLE {t.table} (id bigint) ENGINE = {e}"))
        assert _run(table, table.described).is_transactional is is_transactional
    other = at("by_default")

    def make(c: Any) -> Any:
        other.execute(c, "SET SESSION default_storage_engine = MyISAM")
        other.drop(c, [LEDGER])
        other.ensure_ledger(c)
        other.create(c, SALES, ())
        engines = "SELECT DISTINCT engine FROM information_schema.tables WHERE table_name IN (%s, %s)"
        return other.execute(c, engines, (LEDGER, "by_default"))

    assert _run(other, make) == [("InnoDB",)]


def test_a_value_that_the_server_refuses_is_not_repeated_in_the_error(at: Callable[..., Warehouse]) -> None:
    warehouse = at()
    _run(warehouse, lambda c: warehouse.ensure_ledger(c))
    _run(warehouse, lambda c: warehouse.create(c, [("id", "bigint"), ("name", "varchar(3)")], ("id",)))
    columns = [StagedColumn("id", "bigint"), StagedColumn("name", "varchar(100)")]
    rows = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["canary value"])], ["id", "name"])
    with pytest.raises(SinkUnavailableError, match="refuses a value") as refused:
        _write(warehouse, _batch(0), rows, columns)
    assert "canary" not in str(refused.value)
    short = pa.RecordBatch.from_arrays([pa.array([1, 1]), pa.array(["a", "b"])], ["id", "name"])
    with pytest.raises(SinkUnavailableError, match="refuses a value"):
        _write(warehouse, _batch(0), short, columns)
    assert _rows(warehouse) == []
    assert not _run(warehouse, lambda c: warehouse.has_batch(c, _batch(0)))


def test_only_types_that_take_every_value_are_taken(server: Server, at: Callable[..., Warehouse]) -> None:
    warehouse = at()
    is_postgresql = isinstance(server, PostgresqlServer)
    wide, narrow = ("int8", "int4") if is_postgresql else ("bigint", "int")
    decimal_name = "numeric" if is_postgresql else "decimal"
    assert warehouse.staged(T.IntegerType(), TargetColumn("c", wide)) is not None
    assert warehouse.staged(T.LongType(), TargetColumn("c", narrow)) is None
    assert warehouse.staged(T.LongType(), TargetColumn("c", decimal_name, 19, 0)) is not None
    assert warehouse.staged(T.LongType(), TargetColumn("c", decimal_name, 18, 0)) is None
    assert warehouse.staged(T.DecimalType(10, 2), TargetColumn("c", decimal_name, 10, 2)) is not None
    assert warehouse.staged(T.DecimalType(10, 2), TargetColumn("c", decimal_name, 11, 1)) is None
    assert warehouse.staged(T.DoubleType(), TargetColumn("c", "float4" if is_postgresql else "float")) is None
    moment, wall = ("timestamptz", "timestamp") if is_postgresql else ("timestamp", "datetime")
    assert warehouse.staged(T.TimestampType(), TargetColumn("c", moment)) is not None
    assert warehouse.staged(T.TimestampType(), TargetColumn("c", wall)) is None
    assert warehouse.staged(T.TimestampNTZType(), TargetColumn("c", moment)) is None
    assert warehouse.new_type(T.ArrayType(T.LongType())) is None
    assert warehouse.new_type(T.DayTimeIntervalType()) is None
