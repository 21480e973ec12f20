"""Reads a pipeline's file into its description; everything that needs no Spark is checked here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from semistream.algorithms.registry import ALGORITHMS, DEFAULT_ALGORITHM
from semistream.core.budget import parse_bytes
from semistream.core.errors import InvalidSettingError
from semistream.core.local_paths import scheme_of
from semistream.engine.output.output_plan import JOIN_TYPES
from semistream.joining.join_types import join_type
from semistream.pipeline import places, secrets
from semistream.pipeline.description import (
    JoinDescription,
    PipelineDescription,
    SinkDescription,
    StatisticsDescription,
    TriggerDescription,
)
from semistream.pipeline.reading_mirrors import MIRROR_KEYS, read_mirror
from semistream.pipeline.reading_sources import SOURCE_KEYS, read_source
from semistream.pipeline.reading_spark import read_spark
from semistream.pipeline.reading_steps import read_steps
from semistream.pipeline.toml_table import TomlTable, suggestion

_TABLES = ("pipeline", "source", "master", "join", "transform", "sink", "trigger", "statistics", "spark")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MAX_FILE_BYTES = 1_000_000


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
            raise InvalidSettingError(f"The pipeline file has no table [{name}]: add it.")
    folder = file.absolute().parent
    pipeline = TomlTable("[pipeline]", values["pipeline"], ("name", "checkpoint"))
    name = pipeline.text("name")
    if not _NAME.fullmatch(name):
        raise pipeline.wrong("name", "may contain only letters, digits, '.', '_' and '-'")
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
        spark=read_spark(values.get("spark", {})),
        mirror=read_mirror(_master_table(values["master"]), folder),
    )
    _check_places_apart(description)
    return description


def _parsed(file: Path) -> Mapping[str, object]:
    try:
        if file.stat().st_size > _MAX_FILE_BYTES:
            raise InvalidSettingError(f"{file} is too large for a pipeline file: give the path of a TOML file.")
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidSettingError(f"There is no file {file}: give the path of a pipeline file in TOML.") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InvalidSettingError(f"{file} cannot be read ({why}): give the path of a pipeline file in TOML.") from None
    except UnicodeDecodeError:
        raise InvalidSettingError(f"{file} is not UTF-8 text: save it as UTF-8.") from None
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
    *("order", "partitioning", "dead_letters", "parameters", "disk"),
)


def _read_join(values: object, folder: Path) -> JoinDescription:
    table = TomlTable("[join]", values, _JOIN_KEYS)
    return JoinDescription(
        on=_read_on(table),
        how=_read_how(table),
        memory_bytes=_read_bytes(table, "memory", "64MB"),
        algorithm=table.text("algorithm", DEFAULT_ALGORITHM, choices=tuple(ALGORITHMS)),
        columns=_read_columns(table),
        replace=_checked_names(table, "replace") if "replace" in table else None,
        suffix=_read_suffix(table),
        matched=_read_matched(table),
        order=table.text("order", choices=("any", "input")) if "order" in table else None,
        partitioning=_read_partitioning(table),
        dead_letters=_read_join_letters(table, folder),
        parameters=_read_parameters(table),
        disk_bytes=_read_bytes(table, "disk", "") if "disk" in table else None,
    )


def _read_bytes(table: TomlTable, key: str, default: str) -> int:
    value = table.value(key) if key in table else default
    try:
        return parse_bytes(value)  # type: ignore[arg-type]
    except InvalidSettingError:
        raise table.unexpected(key, 'a size such as "64MB" or "64 MiB"') from None


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
    if not isinstance(value, str) or not value:
        raise table.unexpected("on", 'a column name, a list of them, or a table such as {stream_column = "key_column"}')
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
        raise table.wrong("suffix", "may contain only letters, digits and underscores")
    return suffix


def _read_join_letters(table: TomlTable, folder: Path) -> str | None:
    if "dead_letters" not in table:
        return None
    place = places.written_place(table, "dead_letters", folder)
    if not places.is_local(place):
        raise table.wrong("dead_letters", "must be a folder that all workers reach by the same path")
    return place


def _read_partitioning(table: TomlTable) -> str | int:
    if isinstance(table.value("partitioning"), int):
        return table.whole_number("partitioning", minimum=1) or 1
    if not isinstance(table.value("partitioning"), str | None):
        raise table.unexpected("partitioning", '"auto", "none" or a whole number')
    return table.text("partitioning", "auto", choices=("none", "auto"))


def _read_parameters(table: TomlTable) -> dict[str, float] | None:
    value = table.value("parameters")
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(number, int | float) for number in value.values()):
        raise table.unexpected("parameters", "a table of numbers, true and false, such as {cache_share = 0.5}")
    return {str(name): number if isinstance(number, bool) else float(number) for name, number in value.items()}


def _read_sink(values: object, folder: Path) -> SinkDescription:
    table = TomlTable("[sink]", values, ("format", "path", "partition_by"))
    format_name = table.text("format", choices=("parquet", "console", "noop"))
    if format_name != "parquet":
        for key in ("path", "partition_by"):
            if key in table:
                raise table.wrong(key, f"does not apply to the format {format_name!r}: leave it out")
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
        raise table.wrong("prometheus", "is the same file as json_lines: give two files")
    return StatisticsDescription(files.get("json_lines"), files.get("prometheus"))


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
                raise InvalidSettingError(f"{key} is inside {input_key}, which is read: write somewhere else.")
    for key, output in outputs.items():
        for other_key, other in outputs.items():
            if key != other_key and places.is_inside(output, other):
                raise InvalidSettingError(f"{key} is inside {other_key}: give each a folder of its own.")
