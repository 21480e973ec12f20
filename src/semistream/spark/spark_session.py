"""The Spark session that semistream makes, and the lock that guards a checkpoint on a local disk."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from semistream.core.budget import parse_bytes
from semistream.core.errors import ConcurrentWriteError, InvalidSettingError, SemistreamError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
_ARROW_ROWS = 10_000
_MAX_ARROW_BYTES = 16_000_000
_MAX_TASK_FAILURES = 4
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOG_LEVEL = "spark.log.level"
_LOG_LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
_JAVA_LOCK = ".semistream.java.lock"
_SECONDS_FOR_AN_OLD_JAVA = 30.0
_MADE_HERE = "spark.semistream.session"
_MANAGER_SETTING = "spark.sql.streaming.checkpointFileManagerClass"
_MANAGERS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",  # before Spark 4.1
)
# Task failures are told as one sentence by whoever runs the query; Spark's own traces repeat the data in them.
_QUIET_LOGGING = """\
rootLogger.level = {level}
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{yy/MM/dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


class JavaMissingError(SemistreamError):
    """Spark cannot start because there is no Java that is new enough."""


class CheckpointInUseError(ConcurrentWriteError):
    """Another query uses the checkpoint."""


def make_session(
    app_name: str,
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    *,
    memory: int | str = "64MB",
) -> SparkSession:
    """Return a quiet Spark session with settings that suit enrichment; `settings` go before those of semistream.

    `memory` is the budget of a Python worker: Arrow batches are kept small against it. A local session tries a task
    four times, as a cluster does, unless `master` says how often, as local[2,1] does.
    """
    check_java()
    if os.environ.get("SPARK_REMOTE"):
        raise InvalidSettingError("SPARK_REMOTE is set, but this command starts a session of its own: unset it.")
    # Without it the workers run the system's Python, which has none of our libraries.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    chosen = {**_defaults(master, parse_bytes(memory)), **(settings or {}), _MADE_HERE: "true"}
    with _launching(chosen):
        if SparkSession.getActiveSession() is not None:
            raise InvalidSettingError("A Spark session is already running: use it, or stop it first.")
        try:
            return SparkSession.builder.master(_retrying(master)).appName(app_name).getOrCreate()
        except Exception as error:
            # Settings may hold secrets, so that only the kind of the error is told.
            raise InvalidSettingError(
                f"Spark cannot start at {master} ({type(error).__name__}): check [spark] and run again with --debug."
            ) from error


def _defaults(master: str, memory_bytes: int) -> dict[str, str]:
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_ROWS),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(arrow_batch_bytes(memory_bytes)),
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local") and not master.startswith("local-cluster"):
        settings |= {
            "spark.sql.shuffle.partitions": str(local_cores(master)),
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
    return settings


def _retrying(master: str) -> str:
    """Return a local master that tries tasks again: by default Spark ends the query when one worker is lost."""
    if master == "local":
        return f"local[1,{_MAX_TASK_FAILURES}]"
    return re.sub(r"^local\[(\*|\d+)\]$", rf"local[\1,{_MAX_TASK_FAILURES}]", master)


def arrow_batch_bytes(memory_bytes: int) -> int:
    """Return how large the Arrow batches may be that Spark hands to a worker with this budget."""
    return min(_MAX_ARROW_BYTES, memory_bytes // 4)


def local_cores(master: str) -> int:
    """Return how many tasks run side by side at a master such as local[4]."""
    match = re.match(r"local\[(\*|\d+)", master)
    if match is None:
        return 1
    return len(os.sched_getaffinity(0)) if match[1] == "*" else int(match[1])


@contextmanager
def _launching(settings: Mapping[str, str]) -> Iterator[None]:
    """Let Java, which starts in the block, read its settings and those of its log from files that only we can read.

    PySpark itself would put them on the command line of Java, where every user of the machine can read secrets.
    """
    level = settings.get(_LOG_LEVEL, "FATAL").upper()
    if level not in _LOG_LEVELS:
        raise InvalidSettingError(f"{_LOG_LEVEL} must be one of {', '.join(_LOG_LEVELS)}.")
    before = os.environ.get(_ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="semistream-start-") as folder:
        log = Path(folder) / "log4j2.properties"
        log.write_text(_QUIET_LOGGING.format(level=level.lower()))
        java_options = settings.get(_JAVA_OPTIONS, "")
        if "log4j" not in java_options:
            java_options = f"{java_options} -Dlog4j2.configurationFile={log.as_uri()}".strip()
        # Spark announces a level that comes by its own setting, so that the log's file alone tells it.
        given = {name: value for name, value in settings.items() if name != _LOG_LEVEL} | {_JAVA_OPTIONS: java_options}
        file = Path(folder) / "spark.properties"
        file.write_text("".join(f"{name}={_escaped(value)}\n" for name, value in given.items()), encoding="utf-8")
        os.environ[_ARGUMENTS] = f"--properties-file {file} --load-spark-defaults {before or 'pyspark-shell'}"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_ARGUMENTS]
            else:
                os.environ[_ARGUMENTS] = before


def _escaped(value: str) -> str:
    """Return a value as a file of Java properties has it; settings with line breaks do not come so far."""
    return value.replace("\\", "\\\\")


def check_java() -> None:
    """Raise JavaMissingError unless there is a Java that Spark can run on."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    how = "install one (on Debian: apt install openjdk-17-jre-headless), or set JAVA_HOME to where it is"
    if java is None:
        raise JavaMissingError(f"Spark needs Java {OLDEST_JAVA} or later, but none was found: {how}.")
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        raise JavaMissingError(f"Spark needs Java {OLDEST_JAVA} or later, but {java} does not run: {how}.") from None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', shown.stderr + shown.stdout)
    version = int(match[2] or 0) if match and match[1] == "1" else int(match[1]) if match else 0
    if version < OLDEST_JAVA:
        what = f"is Java {version}" if version else "is no Java"
        raise JavaMissingError(f"Spark needs Java {OLDEST_JAVA} or later, but {java} {what}: {how}.")


class CheckpointLock:
    """An exclusive lock on a local checkpoint folder, held by one process until it ends or leaves the block."""

    FILE_NAME = ".semistream.lock"

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._file: int | None = None

    def __enter__(self) -> CheckpointLock:
        self._folder.mkdir(parents=True, exist_ok=True)
        # Not inherited by children: a Java process that outlives this one must not keep the lock.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._folder / self.FILE_NAME, flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise CheckpointInUseError(
                f"Another query uses the checkpoint {self._folder}: stop it, or give this one a checkpoint of its own."
            ) from None
        self._file = file
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextmanager
def local_checkpoint(spark: SparkSession, folder: str | Path) -> Iterator[None]:
    """Hold the lock of a local checkpoint, and meanwhile use Spark's faster way to write its log files.

    That way lets two drivers commit the same batch in a race, so that it is used only under the lock, and only in
    sessions that semistream made.
    """
    from py4j.protocol import Py4JError

    with CheckpointLock(folder), _java_lock(spark, Path(folder)):
        manager = _fast_manager(spark) if spark.conf.get(_MADE_HERE, "") == "true" else None
        if manager is None:
            yield
            return
        before = spark.conf.get(_MANAGER_SETTING, None)
        spark.conf.set(_MANAGER_SETTING, manager)
        try:
            yield
        finally:
            with suppress(Py4JError, ConnectionError):  # Java may have been stopped meanwhile
                if before is None:
                    spark.conf.unset(_MANAGER_SETTING)
                else:
                    spark.conf.set(_MANAGER_SETTING, before)


@contextmanager
def _java_lock(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Let Java hold a lock of its own: it is what writes, and for a moment it outlives a driver that was killed."""
    from py4j.protocol import Py4JError

    file = java_of(spark).java.io.RandomAccessFile(str(folder / _JAVA_LOCK), "rw")
    try:
        limit = time.monotonic() + _SECONDS_FOR_AN_OLD_JAVA
        while file.getChannel().tryLock() is None:
            if time.monotonic() > limit:
                raise CheckpointInUseError(
                    f"The Java process of an earlier query still uses the checkpoint {folder}: end it, or give this "
                    f"query a checkpoint of its own."
                )
            time.sleep(0.1)
        yield
    finally:
        with suppress(Py4JError, ConnectionError):  # Java may have been stopped meanwhile
            file.close()


def java_of(spark: SparkSession) -> Any:
    """Return the names of Java as the driver sees them."""
    assert spark._jvm is not None
    return spark._jvm


def _fast_manager(spark: SparkSession) -> str | None:
    """Return the name of the class in this Spark, or None if it has it no longer."""
    from py4j.protocol import Py4JError

    for name in _MANAGERS:
        try:
            # The class is of Spark's own jars, which the default loader of classes knows.
            java_of(spark).java.lang.Class.forName(name)
        except Py4JError:
            continue
        return name
    return None
