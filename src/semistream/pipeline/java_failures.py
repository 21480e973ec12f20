"""Turns errors of Java, which come with pages of its stack, into one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError

from semistream.core.errors import InvalidSettingError

_PACKAGES = {
    "s3a": "org.apache.hadoop:hadoop-aws",
    "abfss": "org.apache.hadoop:hadoop-azure",
    "gs": "com.google.cloud.bigdataoss:gcs-connector",
}
_CLASSES = {".s3a.": "s3a", ".azurebfs.": "abfss", "com.google.cloud.hadoop": "gs"}
_MISSING_CLASS = re.compile(r"ClassNotFoundException: Class ([\w.$]*(?:hadoop)[\w.$]*) not found")
_NO_FILE_SYSTEM = re.compile(r'No FileSystem for scheme:? "?([A-Za-z][\w+.-]*)')
_THROWN = re.compile(r"^(?:: |Caused by: )([\w.$]+)(?:: (.*))?$", re.MULTILINE)
_MAX_CHARACTERS = 300


@contextmanager
def java_errors_told() -> Iterator[None]:
    """Raise what Java throws in the block as an error of semistream."""
    try:
        yield
    except Py4JJavaError as error:
        missing = missing_connector(str(error))
        if missing is None:
            missing = InvalidSettingError(
                f"Spark cannot plan the pipeline ({_innermost(str(error))}): check the paths and [spark], and run it "
                f"again with --debug for more."
            )
        raise missing from error


def missing_connector(text: str) -> InvalidSettingError | None:
    """Return the error that says which connector Spark needs, if a text of Java says that one is not there."""
    missing = _MISSING_CLASS.search(text)
    scheme = next((name for part, name in _CLASSES.items() if missing is not None and part in missing[1]), None)
    if scheme is None:
        other = _NO_FILE_SYSTEM.search(text)
        scheme = other[1] if other is not None else None
    if scheme is None:
        return None
    package = _PACKAGES.get(scheme, "the package of its connector")
    return InvalidSettingError(
        f'Spark has no connector for {scheme}:// addresses: set "spark.jars.packages" in [spark] to {package}, in the '
        f"version of Spark's Hadoop, or add its jars to Spark."
    )


def _innermost(text: str) -> str:
    thrown = _THROWN.findall(text)
    kind, said = thrown[-1] if thrown else ("Py4JJavaError", "")
    name = kind.rpartition(".")[2]
    return f"{name}: {' '.join(said.split())[:_MAX_CHARACTERS]}".rstrip(".: ") if said else name
