"""A pipeline's file: what it says, and that whatever is wrong is refused with its table and key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.pipeline import PipelineDescription, read_description
from semistream.pipeline.description import DropDuplicates, SetColumns

EXAMPLES = Path(__file__).parents[2] / "examples"
SOUND = """
[pipeline]
name = "sales"
checkpoint = "state"
[source]
format = "json"
path = "incoming"
schema = "product_id BIGINT, quantity INT"
[enrich]
memory = "64MB"
[[dimension]]
table = "products"
on = "product_id"
[sink]
format = "parquet"
path = "warehouse"
"""


def described(folder: Path, text: str) -> PipelineDescription:
    """Return the description of a file with this text."""
    file = folder / "pipeline.toml"
    file.write_text(text, encoding="utf-8")
    return read_description(file)


def refused(folder: Path, text: str) -> str:
    """Return the one sentence about a text that must be refused."""
    with pytest.raises(SemistreamError) as caught:
        described(folder, text)
    said = str(caught.value)
    assert "\n" not in said
    assert said.endswith((".", "?"))
    return said


def changed(key: str, line: str) -> str:
    """Return the sound text with the line of a key replaced."""
    lines = [line if old.startswith(f"{key} =") else old for old in SOUND.splitlines()]
    assert lines != SOUND.splitlines()
    return "\n".join(lines)


def test_a_short_file_gets_good_defaults(tmp_path: Path) -> None:
    description = described(tmp_path, SOUND)
    assert description.checkpoint == str(tmp_path / "state")
    assert description.sources[0].path == str(tmp_path / "incoming")
    assert description.sink.path == str(tmp_path / "warehouse")
    (dimension,), settings = description.dimensions, description.enrich
    assert dimension.table == str(tmp_path / "products")
    assert (dimension.how, settings.memory_bytes, dimension.columns) == ("inner", 64_000_000, None)
    assert settings.partitioning == "auto"
    assert (settings.order, settings.dead_letters) == (None, None)
    assert (description.prepare, description.transform) == ((), ())
    assert description.sources[0].dead_letters is None
    assert (description.trigger.every, description.trigger.available_now) == ("0 seconds", False)
    assert description.spark.master == "local[*]"


def test_the_example_with_all_settings_has_every_key() -> None:
    from semistream.pipeline.reading_dimensions import DIMENSION_KEYS
    from semistream.pipeline.reading_enrich import ENRICH_KEYS
    from semistream.pipeline.reading_sources import SOURCE_KEYS
    from semistream.pipeline.reading_steps import STEP_KINDS

    file = EXAMPLES / "pipeline_all_settings.toml"
    values = tomllib.loads(file.read_text())
    of_kafka = tomllib.loads((EXAMPLES / "pipeline_kafka.toml").read_text())["source"]
    assert {*values["source"], *of_kafka, "schema_ids", "table"} == set(SOURCE_KEYS)
    assert {kind for step in values["transform"] for kind in step} == set(STEP_KINDS["transform"])
    assert set(values["enrich"]) == set(ENRICH_KEYS)
    assert {key for dimension in values["dimension"] for key in dimension} == set(DIMENSION_KEYS)
    description = read_description(file)
    assert description.enrich.parameters == {"cache_share": 0.3}
    assert description.spark.settings == {"spark.sql.shuffle.partitions": "2"}
    assert description.sources[0].options == {"header": "true", "sep": ";"}
    assert isinstance(description.transform[0], SetColumns)
    assert description.transform[2] == DropDuplicates(("sale_id",), "10 minutes", "sale_date")


def test_parameters_may_be_numbers_and_true_or_false(tmp_path: Path) -> None:
    text = changed("memory", "parameters = {age = false, gaps = 0, share = 0.5}")
    assert described(tmp_path, text).enrich.parameters == {"age": False, "gaps": 0.0, "share": 0.5}


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("pipeline_*.toml")), ids=lambda file: file.name)
def test_every_example_is_sound(file: Path) -> None:
    assert read_description(file).name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SOUND.replace("[enrich]", "[enriched]"), "'enrich'"),
        (SOUND.replace("[[dimension]]", "[dimension]"), "[dimension] must be a list"),
        (SOUND.replace("[sink]", "[[dimension]]\n[sink]"), "[[dimension]] number 2: table is missing"),
        (SOUND.replace("[[dimension]]", "[[dimensions]]"), "did you mean 'dimension'?"),
        (SOUND.replace("[sink]", "[x]"), "[x]"),
        (changed("format", 'fromat = "json"'), "[source] fromat is not a key of this table: did you mean 'format'?"),
        (SOUND.replace('"json"', '"jsonn"'), "[source] format cannot be 'jsonn': did you mean 'json'?"),
        (changed("schema", ""), "[source] schema is missing"),
        (changed("name", 'name = "a b"'), "[pipeline] name"),
        (changed("name", "name = 5"), "[pipeline] name must be a non-empty string"),
        (changed("on", "on = []"), "[[dimension]] on must be a list"),
        (changed("on", 'on = ["a", "a"]'), "[[dimension]] on names a column twice"),
        (changed("memory", 'memory = "64 apples"'), "[enrich] memory must be a size"),
        (changed("memory", 'algorithm = "quickjoin"'), "[enrich] algorithm cannot be"),
        (changed("on", 'on = "a"\nhow = "outer"'), "[[dimension]] how cannot be 'outer'"),
        (changed("memory", 'how = "outer"'), "[enrich] how cannot be 'outer'"),
        (changed("memory", 'order = "sorted"'), "[enrich] order cannot be 'sorted'"),
        (changed("memory", 'dead_letters = "s3a://bucket/x"'), "[enrich] dead_letters must be a folder"),
        (changed("memory", "partitioning = 0"), "[enrich] partitioning must be a whole number"),
        (changed("memory", 'parameters = {x = "y"}'), "[enrich] parameters must be a table of numbers"),
        (SOUND + "[trigger]\nevery = '1 second'\navailable_now = true", "[trigger] every and available_now contradict"),
        (SOUND + "[trigger]\nevery = 'often'", "[trigger] every cannot be 'often'"),
        (SOUND + "[spark]\nmaster = 'localhost'", "[spark] master cannot be 'localhost'"),
        (SOUND + "[spark]\nshuffle = 1", "[spark] shuffle is not a Spark setting"),
        (SOUND + "[spark]\n'spark.app.name' = 'x'", "[spark] spark.app.name cannot be set here"),
        (SOUND + "[[transform]]\nset = {a = 'b'}\nfilter = 'c'", "[[transform]] number 1: has several steps"),
        (SOUND + "[[transform]]\nset = {a = 'b'}\n[[transform]]\nfliter = 'c'", "number 2: fliter is not a key"),
        (SOUND + "[[transform]]\ndrop_duplicates = {on = ['a'], time = 't'}", "drop_duplicates within is missing"),
        (SOUND + "[transform]\nset = {a = 'b'}", "[transform] must be a list of steps"),
        (SOUND.replace('"parquet"', '"noop"'), "[sink] path does not apply to the format"),
        (
            changed("schema", "schema = 'a INT'\n[source.options]\nmode = 'DROPMALFORMED'"),
            "options.mode is not an option",
        ),
        (changed("schema", "schema = 'a INT'\n[source.options]\ncleanSource = 'delete'"), "options.cleanSource"),
        (changed("schema", "schema = 'a INT'\ncorrupt = 'dead_letters'"), "[source] dead_letters is missing"),
        (SOUND.replace('"warehouse"', '"incoming/out"'), "[sink] path is inside [source] path"),
        (SOUND.replace('"warehouse"', '"state/out"'), "[sink] path is inside [pipeline] checkpoint"),
        (SOUND.replace('"state"', '"products/state"'), "[pipeline] checkpoint is inside [[dimension]] table"),
        (changed("memory", 'max_wait = 5\nroom = "warehouse/room"'), "[enrich] room is inside [sink] path"),
        (changed("memory", 'max_wait = 5\nroom = "state"'), "[pipeline] checkpoint is inside [enrich] room"),
        (changed("memory", 'max_wait = 5\nroom = "products/r"'), "[enrich] room is inside [[dimension]] table"),
        (changed("on", 'on = "a"\nretry_for = "1 hour"'), "[[dimension]] retry_for is for parked rows"),
        ("[pipeline", "is not TOML"),
        ("a = " + "[" * 5_000 + "]" * 5_000, "nested too deeply"),
        (
            changed("memory", "memory = [1]"),
            'memory must be a size such as "64MB" or "64 MiB", but is [1]',
        ),
        (
            changed("memory", "memory = 1.5"),
            'memory must be a size such as "64MB" or "64 MiB", but is 1.5',
        ),
        (changed("memory", "memory = 'much'"), "but is 'much'."),
        (changed("memory", "partitioning = 1.5"), '"auto", "none" or a whole number, but is 1.5.'),
        (changed("memory", "parameters = {a = 'b'}"), "but is a table of other values."),
        (changed("memory", "algorithm = 'cachejion'"), "did you mean 'cachejoin'?"),
        (changed("on", "on = 3"), "[[dimension]] on must be a column name, a list of them, or a table such as"),
        (changed("on", "on = 3"), "but is 3."),
        (changed("on", "on = ['a', 'a']"), "[[dimension]] on names a column twice"),
        (changed("name", "name = 7"), "[pipeline] name must be a non-empty string in quotes, but is 7."),
    ],
)
def test_what_is_wrong_is_refused_with_its_table_and_key(tmp_path: Path, text: str, says: str) -> None:
    assert says in refused(tmp_path, text)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="There is no file"):
        read_description(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"state"', '"../state"'),
        ('"state"', '"a/../../state"'),
        ('"state"', '"/tmp/../etc/state"'),
        ('"warehouse"', '"../warehouse"'),
        ('"warehouse"', '"file:///tmp/../warehouse"'),
        ('"warehouse"', '"s3a://bucket/../other"'),
        ('path = "incoming"', 'path = "incoming"\ndead_letters = "../letters"'),
        ("[sink]", '[statistics]\njson_lines = "../lines"\n[sink]'),
        ("[sink]", '[statistics]\nprometheus = "../../metrics"\n[sink]'),
    ],
)
def test_written_paths_cannot_climb_out_of_the_folder(tmp_path: Path, old: str, new: str) -> None:
    said = refused(tmp_path, SOUND.replace(old, new))
    assert "'..'" in said


def test_paths_may_climb_inside_the_folder_and_be_absolute(tmp_path: Path) -> None:
    description = described(
        tmp_path, SOUND.replace('"state"', '"a/../state"').replace('"warehouse"', f'"{tmp_path}/out"')
    )
    assert Path(description.checkpoint).resolve() == tmp_path / "state"
    assert description.sink.path == str(tmp_path / "out")
    assert described(tmp_path, SOUND.replace('"incoming"', '"../incoming"')).sources[0].path is not None


@pytest.mark.parametrize("key", ["state", "warehouse", "statistics"])
def test_symbolic_links_that_lead_elsewhere_are_refused(tmp_path: Path, key: str) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / key).symlink_to(elsewhere)
    text = SOUND + '[statistics]\njson_lines = "statistics/lines"\n'
    assert "symbolic link" in refused(folder, text)


def test_a_folder_behind_a_link_of_the_administrator_is_fine(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    assert described(tmp_path / "data", SOUND).checkpoint
    assert described(tmp_path, SOUND.replace('"warehouse"', f'"{tmp_path}/data/warehouse"')).sink.path


@pytest.mark.parametrize(
    "text",
    [
        SOUND + "[spark]\n'spark.hadoop.fs.s3a.secret.key' = 'hunter2'",
        SOUND + "[spark]\nspark.ssl.keyPassword = 'hunter2'",
        changed("schema", "schema = 'a INT'\n[source.options]\npassword = 'hunter2'"),
        changed("schema", "schema = 'a INT'\n[source.options]\napi_key = 'hunter2'"),
        SOUND.replace('"products"', '"postgresql://shop:hunter2@db/products"'),
        SOUND.replace('"warehouse"', '"s3a://key:hunter2@bucket/x"'),
        SOUND.replace('"products"', '"postgresql://shop:pa/hunter2@db/products"'),
        SOUND.replace('"products"', '"postgresql://shop:12/hunter2@db/products"'),
        SOUND.replace('"products"', '"jdbc:postgresql://shop:hunter2@db/products"'),
        SOUND.replace('"products"', '"jdbc:postgresql://db/products?user=shop&password=hunter2"'),
        SOUND.replace('"products"', '"jdbc:oracle:thin:shop/hunter2@db"'),
        SOUND.replace('"warehouse"', '"abfss://c@a.dfs.core.windows.net/x?sv=2024&sig=hunter2%3D"'),
        SOUND.replace('path = "incoming"', 'path = "s3a://b/x?X-Amz-Signature=hunter2"'),
        SOUND + "[spark]\n'spark.driver.extraJavaOptions' = '-Xmx1g -Djavax.net.ssl.keyStorePassword=hunter2'",
        SOUND + "[spark]\nspark.executor.extraJavaOptions = '-Ddb.pass=hunter2 -Dx=y'",
        SOUND + "[spark]\n'spark.executorEnv.PGPASSWORD' = 'hunter2'",
        SOUND + "[spark]\nspark.executorEnv.MYSQL_PWD = 'hunter2'",
        SOUND + "[spark]\n'spark.executorEnv.STORAGE_KEY' = 'hunter2'",
        SOUND + "[spark]\nspark.executorEnv.BLOB_SAS = 'hunter2'",
        SOUND + "[spark]\n'spark.executorEnv.DATABASE_URL' = 'postgres://shop:hunter2@db/x'",
        SOUND + "[spark]\n'spark.hadoop.fs.azure.sas.c.a' = 'hunter2'",
        SOUND + "[spark]\n'spark.hadoop.some.connection' = 'Endpoint=x;SharedAccessKey=hunter2'",
    ],
)
def test_secrets_in_plain_text_are_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    said = refused(tmp_path, text)
    assert "environment variable" in said
    assert "hunter2" not in said


def test_secrets_come_from_the_environment_and_are_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SOUND.replace('"products"', '{env = "MASTER"}') + '[spark]\n"spark.hadoop.secret" = {env = "KEY"}'
    assert "MASTER" in refused(tmp_path, text)
    monkeypatch.setenv("MASTER", "postgresql://shop:hunter2@db/products")
    monkeypatch.setenv("KEY", "hunter2")
    description = described(tmp_path, text)
    assert description.dimensions[0].table == "postgresql://shop:hunter2@db/products"
    assert description.spark.settings == {"spark.hadoop.secret": "hunter2"}
    assert "hunter2" not in repr(description)


@pytest.mark.parametrize(
    "text",
    [
        SOUND.replace('"warehouse"', '"hdfs://node:8020/warehouse/user@host"'),
        SOUND.replace('"warehouse"', '"abfss://container@account.dfs.core.windows.net/a:b"'),
        SOUND + "[spark]\n'spark.driver.extraJavaOptions' = '-Xmx1g -Dkey=value -Duser.timezone=UTC'",
        SOUND + "[spark]\n'spark.executorEnv.TZ' = 'UTC'",
        SOUND + "[[transform]]\nfilter = \"password = 'x' and token = 'y'\"",
    ],
)
def test_what_only_looks_like_a_secret_is_taken(tmp_path: Path, text: str) -> None:
    assert described(tmp_path, text).name


def test_a_master_table_may_be_at_a_file_address(tmp_path: Path) -> None:
    address = (tmp_path / "my products").as_uri()
    assert described(tmp_path, SOUND.replace('"products"', f'"{address}"')).dimensions[0].table == str(
        tmp_path / "my products"
    )
    inside = SOUND.replace('"products"', f'"{address}"').replace('"state"', '"my products/state"')
    assert "[pipeline] checkpoint is inside [[dimension]] table" in refused(tmp_path, inside)


def test_joins_have_the_names_of_spark_and_may_tell_matches(tmp_path: Path) -> None:
    found = described(tmp_path, changed("on", 'on = "a"\nhow = "left_outer"\nmatched = "is_known"')).dimensions[0]
    assert (found.how, found.matched) == ("left", "is_known")
    assert described(tmp_path, changed("memory", 'memory = "64m"')).enrich.memory_bytes == 64 << 20
    assert described(tmp_path, changed("memory", 'how = "left_outer"')).dimensions[0].how == "left"
    assert "[[dimension]] matched makes a column" in refused(tmp_path, changed("on", 'on = "a"\nmatched = "is known"'))
    assert "[[dimension]] how cannot be 'full_outer'" in refused(
        tmp_path, changed("on", 'on = "a"\nhow = "full_outer"')
    )


def test_columns_may_be_called_like_secrets(tmp_path: Path) -> None:
    assert described(tmp_path, SOUND + "[[transform]]\nset = {token = 'upper(password)'}").transform


@pytest.mark.parametrize("name", ["a; DROP TABLE b", "a` FROM x --", "x'", "a /* */", "a\\nb"])
@pytest.mark.parametrize("place", ["on = ['{}']", "on = 'a'\ncolumns = ['{}']", "on = {{a = '{}'}}"])
def test_identifiers_with_sql_in_them_are_refused(tmp_path: Path, name: str, place: str) -> None:
    line = place.replace("'", '"').format(name)
    assert "[[dimension]]" in refused(tmp_path, changed("on", line))


@pytest.mark.parametrize("name", ["a b", "1a", "a;b", "x=y", "a/b", ""])
def test_new_columns_have_plain_names(tmp_path: Path, name: str) -> None:
    assert "number 1: set" in refused(tmp_path, SOUND + f"[[transform]]\nset = {{'{name}' = '1'}}")
    assert "number 1: rename" in refused(tmp_path, SOUND + f"[[transform]]\nrename = {{quantity = '{name}'}}")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from(
        [
            *("pipeline", "source", "prepare", "enrich", "dimension", "transform"),
            *("sink", "trigger", "statistics", "spark"),
        ]
    ),
    st.data(),
)
def test_whatever_stands_in_a_table_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, value: object, table: str, data: st.DataObject
) -> None:
    values = tomllib.loads(SOUND)
    keys = [
        "path",
        "table",
        "name",
        "checkpoint",
        "on",
        "columns",
        "replace",
        "options",
        "schema",
        "memory",
        "every",
        "filter",
    ]
    where = data.draw(st.sampled_from([None, *keys]))
    if where is None:
        values[table] = value
    else:
        is_list = table in ("prepare", "dimension", "transform")
        values.setdefault(table, [{}] if is_list else {})
        (values[table][0] if is_list else values[table])[where] = value
    from semistream.pipeline import reading

    file = tmp_path_factory.getbasetemp() / "any.toml"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "_parsed", lambda _: values)
        said = ""
        try:
            read_description(file)
        except SemistreamError as error:
            said = str(error)
    assert "\n" not in said
