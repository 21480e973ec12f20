"""Keys of texts, bytes, decimals and several columns are asked for as they are, and match byte for byte."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from database_rows import Server, execute, opened

import semistream as ss
from semistream.core.errors import InvalidSettingError, KeyTypeError, RowTooLargeError
from semistream.core.keys import KeyCodec, KeyCodes
from semistream.store.contract import MasterStore
from semistream.testing import assert_same_rows, joined_rows, reference_join
from servers.mariadb import MariadbServer
from servers.postgresql import PASSWORD, PostgresqlServer

UUID = "7d444840-9dc0-11d1-b245-{:012x}"
KINDS: dict[str, tuple[list[tuple[str, str]], list[Callable[[int], Any]], list[pa.DataType]]] = {
    "texts": ([("varchar(40)", "varchar(40)")], [lambda n: f"Kéy '\\ \" % {n}"], [pa.string()]),
    "padded texts": ([("char(8)", "char(8)")], [lambda n: f"k{n:07}"], [pa.string()]),
    "bytes": ([("bytea", "varbinary(9)")], [lambda n: bytes([0, 255, n % 256, n // 256])], [pa.binary()]),
    "decimals": (
        [("numeric(30, 4)", "decimal(30, 4)")],
        [lambda n: Decimal(n - 50).scaleb(-4)],
        [pa.decimal128(30, 4)],
    ),
    "several columns": (
        [("date", "date"), ("text", "varchar(40)"), ("smallint", "smallint")],
        [lambda n: date(1999, 1, 1 + n % 20), lambda n: f"part {n % 30}", lambda n: n % 7],
        [pa.date32(), pa.string(), pa.int64()],
    ),
    "moments and truths": (
        [("timestamptz", "timestamp(6) null"), ("bigint", "bigint")],
        [lambda n: 1_600_000_000_000_001 + n // 2, lambda n: n % 2],
        [pa.timestamp("us", "UTC"), pa.int64()],
    ),
    "uuids": ([("uuid", "char(36)")], [UUID.format], [pa.string()]),
}


def keys_of(kind: str, numbers: list[int | None]) -> list[pa.Array]:
    _, makers, types = KINDS[kind]
    return [
        pa.array([None if number is None else make(number) for number in numbers], data_type)
        for make, data_type in zip(makers, types, strict=True)
    ]


def load(server: Server, kind: str, count: int, copies: int = 1) -> pa.Table:
    """Make the table `hashed` with the key columns k0, k1 and so on; return its rows."""
    declared, _, _ = KINDS[kind]
    numbers = list(range(count)) * copies
    columns = keys_of(kind, numbers)
    names = [f"k{place}" for place in range(len(columns))]
    rows = pa.table([*columns, pa.array(range(len(numbers))), pa.array([f"words {n}" for n in numbers])],
                    names=[*names, "n", "words"])  # fmt: skip
    of_server = 0 if isinstance(server, PostgresqlServer) else 1
    types = {name: both[of_server] for name, both in zip(names, declared, strict=True)}
    server.load("hashed", rows, types | {"n": "bigint", "words": "varchar(40)"}, key=None)
    # The order of columns in the index does not matter.
    execute(server, f"CREATE INDEX hashed_index ON hashed ({', '.join(reversed(names))}, n)")
    return rows


def address(server: Server, names: list[str], table: str = "hashed", **options: object) -> str:
    return server.address(table, "&key=".join(names), **options)


@pytest.mark.parametrize("kind", KINDS)
def test_joins_by_keys_of_every_kind_are_those_of_the_reference(server: Server, kind: str) -> None:
    master = load(server, kind, 400, copies=1 if kind != "several columns" else 2)
    random = np.random.default_rng(5)
    numbers: list[int | None] = [*(random.zipf(1.2, 3000) % 600).tolist(), None, 1, None]
    keys = keys_of(kind, numbers)
    names = [f"k{place}" for place in range(len(keys))]
    stream = pa.table([*keys, pa.array(range(len(numbers)))], names=[*names, "row"])
    for how in ("left", "anti"):
        joined = ss.join(
            stream.to_batches(max_chunksize=500),
            address(server, names),
            on=names,
            how=how,
            memory="1MB",
        )
        assert_same_rows(
            joined_rows(joined.read_all()), reference_join(stream, master, on={name: name for name in names}, how=how)
        )


def session_rows(store: MasterStore, batches: list[pa.Table], names: list[str]) -> pa.Table:
    def parts() -> Any:
        for batch in batches:
            yield from batch.to_batches()

    return ss.join(parts(), store, on=names, how="left", memory="1MB").read_all()


@pytest.mark.parametrize("kind", ["texts", "several columns"])
def test_keys_that_share_a_code_are_told_apart_cached_or_not(
    server: Server, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = load(server, kind, 60)
    encode = KeyCodec.encode

    def colliding(codec: KeyCodec, columns: list[pa.Array]) -> KeyCodes:
        coded = encode(codec, columns)
        return KeyCodes(coded.codes % 5, coded.usable, coded.nulls)

    monkeypatch.setattr(KeyCodec, "encode", colliding)
    random = np.random.default_rng(2)
    batches = []
    for size in (1, 3, 40, 200, 200, 200):
        keys = keys_of(kind, random.integers(0, 90, size).tolist())
        names = [f"k{place}" for place in range(len(keys))]
        batches.append(pa.table([*keys, pa.array(range(size))], names=[*names, "row"]))
    with ss.MasterTable(address(server, names)).open() as store:
        joined = session_rows(store, batches, names)
    expected = reference_join(pa.concat_tables(batches), master, on={name: name for name in names}, how="left")
    assert_same_rows(joined_rows(joined), expected)


def test_keys_that_a_collation_calls_equal_do_not_match(server: Server) -> None:
    texts = ["a", "A", "a ", "á", "ss", "ß", "", " ", "🦆", "🐟", "e\u0301", "\u00e9", "a\u200b", "b"]
    declared = "varchar(20)"
    if isinstance(server, PostgresqlServer):
        execute(
            server,
            "DROP TABLE IF EXISTS collated",
            "DROP COLLATION IF EXISTS blind",
            "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        )
        declared = "varchar(20) COLLATE blind"
    rows = pa.table({"id": texts, "n": list(range(len(texts)))})
    server.load("collated", rows, {"id": declared, "n": "bigint"})
    stream = pa.table({"id": [*texts, "B", "a  ", "Ä", "🐍", "SS", "none"]})
    for asked in (stream, stream.slice(3, 1), stream.slice(14)):
        joined = ss.join(asked, server.address("collated"), on="id", how="left")
        assert_same_rows(joined_rows(joined.read_all()), reference_join(asked, rows, on={"id": "id"}, how="left"))


@pytest.mark.parametrize("declared", ["varchar(20)", "varchar(20) COLLATE {}"])
def test_keys_that_the_database_compares_loosely_are_warned_of_once(server: Server, declared: str) -> None:
    folding, exact = ("utf8mb4_general_ci", "utf8mb4_bin")
    if isinstance(server, PostgresqlServer):
        execute(
            server,
            "DROP TABLE IF EXISTS collated, warned",
            "DROP COLLATION IF EXISTS blind",
            "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        )
        folding, exact = ("blind", '"C"')
    for collation in (folding, exact):
        types = {"id": declared.format(collation), "n": "bigint"}
        server.load("warned", pa.table({"id": ["a"], "n": [1]}), types)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert len(list(ss.join(pa.table({"id": ["a"]}), server.address("warned"), on="id"))) == 1
        is_folding = collation == folding if "COLLATE" in declared else not isinstance(server, PostgresqlServer)
        said = [str(warning.message) for warning in told]
        assert [sentence[:45] for sentence in said] == is_folding * ["Texts in the key 'id' of the table 'warned' c"]


def test_an_unsigned_key_without_a_code_is_refused_also_among_several_columns(mariadb: MariadbServer) -> None:
    for highest, found in ((2**63 - 1, [1]), (2**63, None)):
        rows = pa.table({"id": pa.array([7, highest], pa.uint64()), "word": ["a", "b"], "n": [0, 1]})
        mariadb.load(
            f"unsigned_{highest}", rows, {"id": "bigint unsigned", "word": "varchar(9)", "n": "bigint"}, key=None
        )
        execute(mariadb, f"CREATE INDEX unsigned_index ON unsigned_{highest} (word, id)")
        asked = rows.slice(1).select(["id", "word"])
        if found is None:
            with pytest.raises(KeyTypeError, match="above"):
                ss.join(asked, address(mariadb, ["id", "word"], f"unsigned_{highest}"), on=["id", "word"])
        else:
            joined = ss.join(
                asked, address(mariadb, ["id", "word"], f"unsigned_{highest}"), on=["id", "word"]
            ).read_all()
            assert joined["n"].to_pylist() == found


def test_spaces_at_the_end_of_padded_texts_count_as_the_database_shows_them(server: Server) -> None:
    server.load("padded", pa.table({"id": ["ab", "abcd"], "n": [1, 2]}), {"id": "char(4)", "n": "bigint"})
    shown = "ab  " if isinstance(server, PostgresqlServer) else "ab"
    rows = pa.table({"id": [shown, "abcd"], "n": [1, 2]})
    stream = pa.table({"id": ["ab", "ab ", "ab  ", "ab   ", "abcd", "abcd ", "AB  ", ""]})
    joined = ss.join(stream, server.address("padded"), on="id", how="left")
    assert_same_rows(joined_rows(joined.read_all()), reference_join(stream, rows, on={"id": "id"}, how="left"))


def test_keys_that_no_row_of_the_database_can_have_are_absent(server: Server) -> None:
    declared = "uuid" if isinstance(server, PostgresqlServer) else "varchar(40) CHARACTER SET latin1"
    present = UUID.format(1)
    server.load("odd_keys", pa.table({"id": [present, UUID.format(2)], "n": [1, 2]}), {"id": declared, "n": "int"})
    stream = pa.table({"id": [present, present.upper(), "not one", "\0", "🦆", "?", "é", "", "x" * 5000]})
    joined = ss.join(stream, server.address("odd_keys"), on="id", how="inner")
    assert joined.read_all().to_pylist() == [{"id": present, "n": 1}]


def test_absent_keys_are_remembered_and_not_asked_for_again(server: Server) -> None:
    load(server, "texts", 200)
    stream = pa.table({"k0": keys_of("texts", list(range(190, 220)))[0]})
    parts = iter([stream.to_batches()[0]] * 3)
    joined = ss.join(parts, address(server, ["k0"]), on="k0", how="left")
    assert [joined.stats.read_requests for _ in joined] == [1, 1, 1]
    assert joined.stats.absent == 3 * 20


def test_a_table_without_rows_and_one_with_a_single_row_can_be_asked(server: Server) -> None:
    for count in (0, 1):
        load(server, "texts", count)
        stream = pa.table({"k0": keys_of("texts", [0, 1, None])[0]})
        joined = ss.join(stream, address(server, ["k0"]), on="k0", how="left", columns=["n"])
        assert [row["n"] for row in joined.read_all().to_pylist()] == [0 if count else None, None, None]


def test_algorithms_that_read_pages_are_refused_in_one_sentence(server: Server) -> None:
    load(server, "texts", 5)
    stream = pa.table({"k0": keys_of("texts", [0])[0]})
    for algorithm in ("meshjoin", "hybridjoin", "cachejoin"):
        with pytest.raises(InvalidSettingError, match=f"^{algorithm} would read pages, .* choose demandjoin"):
            ss.join(stream, address(server, ["k0"]), on="k0", algorithm=algorithm).read_all()
    with opened(server, "hashed", "k0") as store, pytest.raises(InvalidSettingError, match="no order"):
        store.read(np.array([0]), np.array([0]))


def test_an_index_must_begin_with_all_columns_of_the_key(server: Server) -> None:
    rows = pa.table({"a": ["x"], "b": ["y"], "c": [1]})
    server.load("indexed", rows, {"a": "varchar(9)", "b": "varchar(9)", "c": "int"}, key="a")
    with pytest.raises(KeyTypeError, match="no index on 'a' and 'b'"):
        ss.MasterTable(address(server, ["a", "b"], "indexed")).open()
    execute(server, "CREATE INDEX ON indexed (c, a, b)" if isinstance(server, PostgresqlServer) else
            "CREATE INDEX other ON indexed (c, a, b)")  # fmt: skip
    with pytest.raises(KeyTypeError, match="no index"):
        ss.MasterTable(address(server, ["a", "b"], "indexed")).open()
    execute(server, "CREATE UNIQUE INDEX both_parts ON indexed (b, a)")
    for names, unique in ((["a", "b"], True), (["b", "a"], True), (["a"], False), (["a", "b", "c"], True)):
        with ss.MasterTable(address(server, names, "indexed")).open() as store:
            assert store.unique is unique
    with pytest.raises(KeyTypeError, match="names a column twice"):
        ss.MasterTable(address(server, ["a", "a"], "indexed")).open()


def test_an_index_that_compares_otherwise_than_the_table_does_not_count(
    postgresql: PostgresqlServer, mariadb: MariadbServer
) -> None:
    rows = pa.table({"id": ["x"]})
    postgresql.load("indexed", rows, {"id": "text"}, key=None)
    execute(postgresql, 'CREATE INDEX ON indexed (id COLLATE "POSIX")')
    mariadb.load("indexed", rows, {"id": "varchar(20)"}, key=None, more=", INDEX (id(3))")
    for server in (postgresql, mariadb):
        with pytest.raises(KeyTypeError, match="no index"):
            opened(server, "indexed")


def test_keys_of_other_types_are_refused_with_the_way_out(server: Server) -> None:
    declared = ["double precision"]
    declared += ["jsonb", "interval", "int[]"] if isinstance(server, PostgresqlServer) else ["enum('1')", "time"]
    for one in declared:
        execute(server, "DROP TABLE IF EXISTS refused", f"CREATE TABLE refused (id {one}, n int)")
        with pytest.raises(KeyTypeError, match=r"copy the table with MasterTable\.build"):
            opened(server, "refused")


def test_a_key_with_more_matches_than_the_memory_holds_is_an_error_before_they_come(server: Server) -> None:
    texts = ["few"] * 3 + ["many"] * 2000
    rows = pa.table({"id": texts, "words": ["x" * 1000] * len(texts)})
    server.load("matches", rows, {"id": "varchar(9)", "words": "text"})
    stream = pa.table({"id": ["few", "many", "none"]})
    with pytest.raises(RowTooLargeError, match=r"The rows of one key of the table 'matches' take at least"):
        ss.join(stream, server.address("matches"), on="id", how="left", memory="2MB").read_all()
    joined = ss.join(stream, server.address("matches"), on="id", how="left", memory="64MB")
    assert sum(batch.num_rows for batch in joined) == 2004


def test_keys_longer_than_a_server_takes_in_one_query_are_asked_for_by_several(mariadb: MariadbServer) -> None:
    load(mariadb, "texts", 100)
    present = keys_of("texts", list(range(100)))[0].to_pylist()
    stream = pa.table({"k0": [*present, *(f"{n} " + "x" * 30_000 for n in range(1000)), "y" * 9_000_000]})
    joined = ss.join(stream, address(mariadb, ["k0"]), on="k0", columns=["n"], memory="256MB")
    assert sorted(row["n"] for batch in joined for row in batch.select(["n"]).to_pylist()) == list(range(100))


def test_a_view_may_have_keys_of_texts(server: Server) -> None:
    load(server, "texts", 50)
    view = "CREATE VIEW shown_texts AS SELECT k0 AS name, n * 10 AS tens FROM hashed WHERE n < 40"
    execute(server, "DROP VIEW IF EXISTS shown_texts", view)
    stream = pa.table({"name": keys_of("texts", [1, 39, 40, 1])[0]})
    joined = ss.join(stream, server.address("shown_texts", "name"), on="name", how="left")
    assert [row["tens"] for row in joined.read_all().to_pylist()] == [10, 390, None, 10]
    execute(server, "DROP VIEW shown_texts")


def test_texts_of_a_database_that_does_not_know_all_characters_cannot_be_keys(postgresql: PostgresqlServer) -> None:
    execute(postgresql, "DROP DATABASE IF EXISTS latin")
    execute(postgresql, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    import psycopg

    with psycopg.connect(
        host="127.0.0.1", port=postgresql.port, user="postgres", password=PASSWORD, dbname="latin", autocommit=True
    ) as connection:
        connection.execute("CREATE TABLE few (id text PRIMARY KEY, number int UNIQUE)")
        connection.execute("INSERT INTO few VALUES ('é', 7)")
    of_latin = postgresql.address("few", "number").replace("/postgres?", "/latin?")
    joined = ss.join(pa.table({"number": [7, 8]}), of_latin, on="number")
    assert joined.read_all().to_pylist() == [{"number": 7, "id": "é"}]
    with pytest.raises(KeyTypeError, match=r"MasterTable\.build"):
        ss.MasterTable(of_latin.replace("key=number", "key=id")).open()
