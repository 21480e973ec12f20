"""Reads a pipeline's file into its description; everything that needs no Spark is checked here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from semistream.algorithms.registry import DEFAULT_ALGORITHM, algorithm_named
from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.core.local_paths import scheme_of
from semistream.engine.output.output_plan import JOIN_TYPES
from semistream.joining.join_types import join_type
from semistream.pipeline import places, secrets
from semistream.pipeline.description import (
    JoinDescription,
    PipelineDescription,
    SinkDescription,
    SparkDescription,
    StatisticsDescription,
    TriggerDescription,
)
from semistream.pipeline.reading_mirrors import MIRROR_KEYS, read_mirror
from semistream.pipeline.reading_sources import SOURCE_KEYS, read_source
from semistream.pipeline.reading_steps import read_steps
from semistream.pipeline.toml_table import TomlTable, has_control_characters, suggestion

_TABLES = ("pipeline", "source", "master", "join", "transform", "sink", "trigger", "statistics", "spark")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MASTER_URL = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[[\d, ]+\]|yarn|(spark|k8s)://\S+")
_MAX_FILE_BYTES = 1_000_000
_FIXED_SETTINGS = {
    "spark.master": "give master = … in [spark]",
    "spark.remote": "give master = … in [spark]",
    "spark.app.name": "the name in [pipeline] is used",
    "spark.sql.streaming.checkpointLocation": "give checkpoint in [pipeline]",
    "spark.sql.streaming.checkpointFileManagerClass": "semistream chooses it by the place of the checkpoint",
}


def read_description(file: str | Path) -> PipelineDescription:
    """Return what a pipeline's file says, or raise an error that names its table and key."""
    file = Path(file)
    values = _parsed(file)
    secrets.refuse_plain_secrets(values)
    for name in values:
        if name not in _TABLES:
            shown = " ".join(name.split())[:100]
            raise InvalidSettingError(f"[{shown}] is not a table of a pipeline file: {suggestion(name, _TABLES)}")
    for name in ("pipeline", "source", "master", "join", "sink"):
        if name not in values:
            raise InvalidSettingError(f"The pipeline's file has no table [{name}]: add it.")
    folder = file.absolute().parent
    pipeline = TomlTable("[pipeline]", values["pipeline"], ("name", "checkpoint"))
    name = pipeline.text("name")
    if not _NAME.fullmatch(name):
        raise pipeline.wrong("name", "may have letters, digits, '.', '_' and '-' only")
    description = PipelineDescription(
        file=file,
        name=name,
        checkpoint=places.written_place(pipeline, "checkpoint", folder),
        source=read_source(TomlTable("[source]", values["source"], SOURCE_KEYS), folder),
        master=_read_master(values["master"], folder),
        join=_read_join(values["join"], folder),
        steps=read_steps(values.get("transform", [])),
        sink=_read_sink(values["sink"], folder),
        trigger=_read_trigger(values.get("trigger", {})),
        statistics=_read_statistics(values.get("statistics", {}), folder),
        spark=_read_spark(values.get("spark", {})),
        mirror=read_mirror(_master_table(values["master"]), folder),
    )
    _check_places_apart(description)
    return description


def _parsed(file: Path) -> Mapping[str, object]:
    try:
        if file.stat().st_size > _MAX_FILE_BYTES:
            raise InvalidSettingError(f"{file} is too large for a pipeline's file: give the path of a TOML file.")
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidSettingError(f"There is no file {file}: give the path of a pipeline's TOML file.") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InvalidSettingError(f"{file} cannot be read ({why}): give the path of a pipeline's TOML file.") from None
    except UnicodeDecodeError:
        raise InvalidSettingError(f"{file} is not text in UTF-8: save it as such.") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidSettingError(f"{file} is not TOML: {str(error).rstrip('.')}.") from None


def _master_table(values: object) -> TomlTable:
    return TomlTable("[master]", values, ("path", *MIRROR_KEYS))


def _read_master(values: object, folder: Path) -> str:
    table = _master_table(values)
    secret = secrets.from_environment(table.required("path"), "[master] path")
    if secret is not None:
        return secret
    # The store itself refuses addresses, and repeats nothing of them.
    is_address = scheme_of(table.text("path")) not in (None, "file")
    return table.text("path") if is_address else places.read_place(table, "path", folder)


_JOIN_KEYS = (
    *("on", "how", "memory", "algorithm", "columns", "replace", "suffix", "matched"),
    *("order", "partitioning", "dead_letters", "parameters"),
)


def _read_join(values: object, folder: Path) -> JoinDescription:
    table = TomlTable("[join]", values, _JOIN_KEYS)
    try:
        memory_bytes = parse_bytes(_text_or_number(table, "memory", "64MB"))
    except InvalidSettingError as error:
        raise table.wrong("memory", f"is wrong: {error}") from None
    algorithm = table.text("algorithm", DEFAULT_ALGORITHM)
    try:
        algorithm_named(algorithm)
    except SemistreamError as error:
        raise table.wrong("algorithm", f"is wrong: {error}") from None
    return JoinDescription(
        on=_read_on(table),
        how=_read_how(table),
        memory_bytes=memory_bytes,
        algorithm=algorithm,
        columns=_read_columns(table),
        replace=_checked_names(table, "replace") if "replace" in table else None,
        suffix=_read_suffix(table),
        matched=_read_matched(table),
        order=table.text("order", choices=("any", "input")) if "order" in table else None,
        partitioning=_read_partitioning(table),
        dead_letters=_read_join_letters(table, folder),
        parameters=_read_parameters(table),
    )


def _read_how(table: TomlTable) -> str:
    text = table.text("how", "inner")
    try:
        return join_type(text)
    except InvalidSettingError:
        raise table.wrong("how", f"cannot be {text!r}: {suggestion(text, JOIN_TYPES)}") from None


def _read_matched(table: TomlTable) -> str | None:
    name = table.optional_text("matched")
    if name is not None:
        table.check_new_name("matched", name)
    return name


def _read_on(table: TomlTable) -> str | tuple[str, ...] | Mapping[str, str]:
    value = table.required("on")
    if isinstance(value, Mapping):
        return _checked_names(table, "on")
    if isinstance(value, list):
        return table.names("on")
    name = table.text("on")
    table.check_name("on", name)
    return name


def _checked_names(table: TomlTable, key: str) -> dict[str, str]:
    names = table.texts_by_name(key)
    for ours, theirs in names.items():
        table.check_name(key, ours)
        table.check_name(key, theirs)
    return names


def _read_columns(table: TomlTable) -> tuple[str, ...] | None:
    # An empty list makes sense here: only the columns that `replace` names are wanted.
    return () if table.value("columns") == [] else table.optional_names("columns")


def _read_suffix(table: TomlTable) -> str | None:
    suffix = table.optional_text("suffix")
    if suffix is not None and not re.fullmatch(r"\w{1,64}", suffix):
        raise table.wrong("suffix", "may have letters, digits and underscores only")
    return suffix


def _read_join_letters(table: TomlTable, folder: Path) -> str | None:
    if "dead_letters" not in table:
        return None
    place = places.written_place(table, "dead_letters", folder)
    if not places.is_local(place):
        raise table.wrong("dead_letters", "must be a folder that all workers reach by its path")
    return place


def _read_partitioning(table: TomlTable) -> str | int:
    if isinstance(table.value("partitioning"), int):
        return table.whole_number("partitioning", least=1) or 1
    return table.text("partitioning", "auto", choices=("none", "auto"))


def _read_parameters(table: TomlTable) -> dict[str, float] | None:
    value = table.value("parameters")
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(number, int | float) for number in value.values()):
        raise table.wrong("parameters", "must be a table of numbers, true and false, such as {cache_share = 0.5}")
    return {str(name): number if isinstance(number, bool) else float(number) for name, number in value.items()}


def _read_sink(values: object, folder: Path) -> SinkDescription:
    table = TomlTable("[sink]", values, ("format", "path", "partition_by"))
    format_name = table.text("format", choices=("parquet", "console", "noop"))
    if format_name != "parquet":
        for key in ("path", "partition_by"):
            if key in table:
                raise table.wrong(key, f"has no meaning for the format {format_name!r}: leave it out")
    return SinkDescription(
        format=format_name,
        path=places.written_place(table, "path", folder) if format_name == "parquet" else None,
        partition_by=table.optional_names("partition_by") or (),
    )


def _read_trigger(values: object) -> TriggerDescription:
    table = TomlTable("[trigger]", values, ("every", "available_now"))
    available_now = table.flag("available_now")
    if available_now and "every" in table:
        raise table.wrong("every", "and available_now contradict each other: give one of them")
    return TriggerDescription(table.interval("every") if "every" in table else "0 seconds", available_now)


def _read_statistics(values: object, folder: Path) -> StatisticsDescription:
    table = TomlTable("[statistics]", values, ("json_lines", "prometheus"))
    files = {key: places.written_file(table, key, folder) for key in ("json_lines", "prometheus") if key in table}
    if len(set(files.values())) < len(files):
        raise table.wrong("prometheus", "is the file of json_lines, too: give two files")
    return StatisticsDescription(files.get("json_lines"), files.get("prometheus"))


def _read_spark(values: object) -> SparkDescription:
    if not isinstance(values, Mapping):
        raise InvalidSettingError("[spark] must be a table of Spark settings.")
    rest = {key: value for key, value in values.items() if key != "master"}
    table = TomlTable("[spark]", {key: value for key, value in values.items() if key == "master"}, ("master",))
    master = table.text("master", "local[*]")
    if not _MASTER_URL.fullmatch(master):
        raise table.wrong("master", f"cannot be {master!r}: write local[*], local[4], yarn, spark://… or k8s://…")
    settings = {}
    for key, value in _flat(rest):
        if not key.startswith("spark."):
            raise table.wrong(key, 'is no setting of Spark: write its whole name in quotes, such as "spark.task.cpus"')
        if key in _FIXED_SETTINGS:
            raise table.wrong(key, f"cannot be set here: {_FIXED_SETTINGS[key]}")
        settings[key] = _setting(table, key, value)
    return SparkDescription(master, settings)


def _flat(values: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    """Return settings under their whole names, since TOML makes tables of names with dots."""
    settings: list[tuple[str, object]] = []
    for key, value in values.items():
        if isinstance(value, Mapping) and set(value) != {"env"}:
            settings.extend(_flat(value, f"{prefix}{key}."))
        else:
            settings.append((f"{prefix}{key}", value))
    return settings


def _setting(table: TomlTable, key: str, value: object) -> str:
    secret = secrets.from_environment(value, f"[spark] {key}")
    if secret is not None:
        return secret
    if secrets.names_a_secret(key):
        raise table.wrong(key, 'is a secret: give it by an environment variable, with {env = "NAME"} in its place')
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float) and not has_control_characters(str(value)):
        return str(value)
    raise table.wrong(key, "must be a text on one line, a number, true or false")


def _text_or_number(table: TomlTable, key: str, default: str) -> str | int:
    value = table.value(key)
    return value if isinstance(value, int) else table.text(key, default)


def _check_places_apart(description: PipelineDescription) -> None:
    """Raise an error if what is written would land in what is read, or two outputs in one place."""
    statistics = description.statistics
    written = {
        "[pipeline] checkpoint": description.checkpoint,
        "[sink] path": description.sink.path,
        "[source] dead_letters": description.source.dead_letters,
        "[join] dead_letters": description.join.dead_letters,
        "[statistics] json_lines": str(statistics.json_lines) if statistics.json_lines else None,
        "[statistics] prometheus": str(statistics.prometheus) if statistics.prometheus else None,
    }
    outputs = {key: place for key, place in written.items() if place is not None}
    master = description.master if scheme_of(description.master) is None else None
    for input_key, place in (("[source] path", description.source.path), ("[master] path", master)):
        for key, output in outputs.items():
            if place is not None and places.is_inside(output, place):
                raise InvalidSettingError(f"{key} lies in {input_key}, which is read: write to another place.")
    for key, output in outputs.items():
        for other_key, other in outputs.items():
            if key != other_key and places.is_inside(output, other):
                raise InvalidSettingError(f"{key} lies in {other_key}: give each a place of its own.")
