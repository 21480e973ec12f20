"""Reads the table [source] of a pipeline's file."""

from __future__ import annotations

from pathlib import Path

from semistream.pipeline import places, secrets
from semistream.pipeline.description import SourceDescription
from semistream.pipeline.toml_table import TomlTable, suggestion

SOURCE_KEYS = ("format", "path", "schema", "options", "max_files_per_trigger", "corrupt", "dead_letters")
_FILES = ("pathGlobFilter", "recursiveFileLookup", "maxFileAge", "latestFirst", "fileNameOnly", "maxBytesPerTrigger")
_TEXTS = ("encoding", "lineSep", "multiLine", "locale", "timeZone", "dateFormat", "timestampFormat")
_TEXT_FILES = (*_FILES, *_TEXTS, "timestampNTZFormat")
# Only what changes how data is read: nothing that writes, deletes, or loads code.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "json": (
        *_TEXT_FILES,
        *("allowComments", "allowUnquotedFieldNames", "allowSingleQuotes", "allowNumericLeadingZeros"),
        *("allowBackslashEscapingAnyCharacter", "allowNonNumericNumbers", "primitivesAsString"),
    ),
    "csv": (
        *_TEXT_FILES,
        *("sep", "header", "quote", "escape", "comment", "nullValue", "emptyValue", "nanValue", "positiveInf"),
        *("negativeInf", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "maxCharsPerColumn", "maxColumns"),
    ),
    "parquet": _FILES,
    "sales": (
        *("products", "exponent", "ranks", "stride", "absent", "seed", "rate", "arrivals", "stepSeconds", "onSeconds"),
        *("offSeconds", "start", "rows", "rowsPerBatch", "maxRowsPerBatch", "partitions"),
    ),
    "socket": ("host", "port"),
}
_REQUIRED_OPTIONS = {"sales": ("products",), "socket": ("host", "port")}
_WITH_FILES = ("json", "csv", "parquet")
_WITH_RECORDS = ("json", "csv")


def read_source(table: TomlTable, folder: Path) -> SourceDescription:
    """Return where the stream comes from."""
    format_name = table.text("format", choices=tuple(_OPTIONS))
    if format_name not in _WITH_FILES:
        for key in ("path", "max_files_per_trigger"):
            if key in table:
                raise table.wrong(key, f"does not apply to the format {format_name!r}: leave it out")
    if format_name in _WITH_RECORDS and "schema" not in table:
        raise table.wrong("schema", 'is missing: give the columns, such as "product_id BIGINT, quantity INT"')
    if format_name == "sales" and "schema" in table:
        raise table.wrong("schema", "does not apply to the format 'sales': leave it out")
    return SourceDescription(
        format=format_name,
        path=places.read_place(table, "path", folder) if format_name in _WITH_FILES else None,
        schema=table.optional_text("schema"),
        options=_read_options(table, format_name),
        max_files_per_trigger=table.whole_number("max_files_per_trigger", minimum=1),
        dead_letters=_read_dead_letters(table, format_name, folder),
    )


def _read_options(table: TomlTable, format_name: str) -> dict[str, str]:
    known = _OPTIONS[format_name]
    values = table.value("options") if "options" in table else {}
    if not isinstance(values, dict):
        raise table.wrong("options", "must be a table, such as [source.options]")
    options: dict[str, str] = {}
    for key, value in values.items():
        where = f"options.{key}"
        if secrets.names_a_secret(key):
            raise table.wrong(where, "looks like a secret: put it in an environment variable, in [spark]")
        if key not in known:
            raise table.wrong(where, f"is not an option of {format_name!r}: {suggestion(key, known)}")
        if isinstance(value, bool):
            options[key] = str(value).lower()
        elif isinstance(value, str | int | float):
            options[key] = str(value)  # with control characters: a separator may be one
        else:
            raise table.wrong(where, "must be a string, a number, true or false")
    for key in _REQUIRED_OPTIONS.get(format_name, ()):
        if key not in options:
            raise table.wrong(f"options.{key}", f"is missing: the format {format_name!r} needs it")
    return options


def _read_dead_letters(table: TomlTable, format_name: str, folder: Path) -> str | None:
    given = "dead_letters" in table
    corrupt = table.text("corrupt", "dead_letters" if given else "stop", choices=("stop", "dead_letters"))
    if corrupt == "stop":
        if given:
            raise table.wrong("dead_letters", "contradicts corrupt = 'stop': leave one of them out")
        return None
    if format_name not in _WITH_RECORDS:
        raise table.wrong("dead_letters", f"works with {' and '.join(_WITH_RECORDS)} only: leave it out")
    if not given:
        raise table.wrong("dead_letters", "is missing: give the folder for records that cannot be read")
    return places.written_place(table, "dead_letters", folder)
