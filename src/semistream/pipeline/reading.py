"""Reads a pipeline's file into its description; everything that needs no Spark is checked here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from semistream.core.errors import InvalidSettingError
from semistream.core.local_paths import scheme_of
from semistream.pipeline import places, secrets
from semistream.pipeline.description import (
    PipelineDescription,
    TriggerDescription,
)
from semistream.pipeline.reading_dimensions import read_dimensions
from semistream.pipeline.reading_enrich import ENRICH_KEYS, read_enrich
from semistream.pipeline.reading_sinks import SINK_KEYS, read_sink
from semistream.pipeline.reading_sources import read_sources
from semistream.pipeline.reading_spark import read_spark
from semistream.pipeline.reading_statistics import read_statistics
from semistream.pipeline.reading_steps import read_steps
from semistream.pipeline.toml_table import TomlTable, suggestion

_TABLES = (
    *("pipeline", "source", "prepare", "enrich", "dimension", "transform"),
    *("sink", "trigger", "statistics", "spark"),
)
_REQUIRED = {"pipeline": "[pipeline]", "source": "[source]", "dimension": "[[dimension]]", "sink": "[sink]"}
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
    for name, shown in _REQUIRED.items():
        if name not in values:
            raise InvalidSettingError(f"The pipeline file has no table {shown}: add it.")
    folder = file.absolute().parent
    pipeline = TomlTable("[pipeline]", values["pipeline"], ("name", "checkpoint"))
    name = pipeline.text("name")
    if not _NAME.fullmatch(name):
        raise pipeline.wrong("name", "may contain only letters, digits, '.', '_' and '-'")
    enrich = read_enrich(TomlTable("[enrich]", values.get("enrich", {}), ENRICH_KEYS), folder)
    description = PipelineDescription(
        file=file,
        name=name,
        checkpoint=places.written_place(pipeline, "checkpoint", folder),
        sources=read_sources(values["source"], folder),
        prepare=read_steps("prepare", values.get("prepare", [])),
        enrich=enrich,
        dimensions=read_dimensions(values["dimension"], folder, how=enrich.how),
        transform=read_steps("transform", values.get("transform", [])),
        sink=read_sink(TomlTable("[sink]", values["sink"], SINK_KEYS), folder),
        trigger=_read_trigger(values.get("trigger", {})),
        statistics=read_statistics(values.get("statistics", {}), folder),
        spark=read_spark(values.get("spark", {})),
    )
    _check_places_apart(description)
    _check_topics_apart(description)
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
    except RecursionError:
        raise InvalidSettingError(f"{file} is nested too deeply for a pipeline file: correct it.") from None


def _read_trigger(values: object) -> TriggerDescription:
    table = TomlTable("[trigger]", values, ("every", "available_now"))
    available_now = table.flag("available_now")
    if available_now and "every" in table:
        raise table.wrong("every", "and available_now contradict each other: give one of them")
    return TriggerDescription(table.interval("every") if "every" in table else "0 seconds", available_now)


def _check_places_apart(description: PipelineDescription) -> None:
    """Raise an error if what is written would land in what is read, or two outputs in one place."""
    statistics = description.statistics
    written = {
        "[pipeline] checkpoint": description.checkpoint,
        "[sink] path": description.sink.path,
        **{f"{source.where} dead_letters": source.dead_letters for source in description.sources},
        "[enrich] dead_letters": description.enrich.dead_letters,
        "[enrich] room": description.enrich.room,
        "[statistics] json_lines": str(statistics.json_lines) if statistics.json_lines else None,
        "[statistics] prometheus": str(statistics.prometheus) if statistics.prometheus else None,
    }
    outputs = {key: place for key, place in written.items() if place is not None}
    inputs = [(f"{source.where} path", source.path) for source in description.sources if source.path is not None]
    local = [dimension for dimension in description.dimensions if scheme_of(dimension.table) is None]
    inputs += [(f"{dimension.where} table", dimension.table) for dimension in local]
    for input_key, place in inputs:
        for key, output in outputs.items():
            if places.is_inside(output, place):
                raise InvalidSettingError(f"{key} is inside {input_key}, which is read: write somewhere else.")
    for key, output in outputs.items():
        for other_key, other in outputs.items():
            if (key, other_key) == ("[enrich] room", "[pipeline] checkpoint") and output != other:
                continue  # where it is by default
            if key != other_key and places.is_inside(output, other):
                raise InvalidSettingError(f"{key} is inside {other_key}: give each a folder of its own.")


def _check_topics_apart(description: PipelineDescription) -> None:
    """Raise an error if a message would come back as input, over and over."""
    read = {
        (server, topic)
        for source in description.sources
        if source.topic is not None
        for server in _servers(source.topic.servers)
        for topic in source.topic.topics
    }
    written = {
        f"{source.where} dead_letters": (source.topic.servers, source.dead_letters_topic)
        for source in description.sources
        if source.topic is not None and source.dead_letters_topic is not None
    }
    if description.sink.topic is not None:
        written["[sink] topic"] = (description.sink.topic.servers, description.sink.topic.name)
    for key, (servers, topic) in written.items():
        if any((server, topic) in read for server in _servers(servers)):
            raise InvalidSettingError(f"{key} is a topic that is read: give another topic.")


def _servers(text: str) -> set[str]:
    return {server.strip().lower() for server in text.split(",")}
