"""The session that semistream makes: Java that is missing, the lock of a checkpoint, quiet defaults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from semistream.core.errors import InvalidSettingError
from semistream.spark import spark_session
from semistream.spark.spark_session import (
    CheckpointInUseError,
    CheckpointLock,
    JavaMissingError,
    check_java,
    make_session,
)


def _fake_java(folder: Path, says: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11"),
        ('java version "1.8.0_452"', "is Java 8"),
        ("cannot start", "is no Java"),
    ],
)
def test_an_old_java_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, told: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path, says)))
    with pytest.raises(JavaMissingError) as caught:
        make_session("test")
    assert told in str(caught.value)
    assert "apt install openjdk-17-jre-headless" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("says", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19'])
def test_a_new_java_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path, says)))
    check_java()


def test_no_java_at_all_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissingError, match="but none was found"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(JavaMissingError, match="does not run"):
        check_java()


def test_a_checkpoint_has_one_holder_across_processes(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    program = f"from semistream.spark.spark_session import CheckpointLock\nwith CheckpointLock({str(folder)!r}): pass"
    with CheckpointLock(folder):
        with pytest.raises(CheckpointInUseError, match="Another query uses the checkpoint"), CheckpointLock(folder):
            pass
        other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert "CheckpointInUseError" in other.stderr
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_lock_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / CheckpointLock.FILE_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"), CheckpointLock(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_arrow_batches_are_small_against_the_memory() -> None:
    assert spark_session._defaults("local[4]", 64_000_000)["spark.sql.execution.arrow.maxBytesPerBatch"] == "16000000"
    small = spark_session._defaults("local[4]", 8_000_000)
    assert small["spark.sql.execution.arrow.maxBytesPerBatch"] == "2000000"
    assert small["spark.sql.shuffle.partitions"] == "4"
    assert "spark.sql.shuffle.partitions" not in spark_session._defaults("yarn", 8_000_000)


def test_a_level_of_logging_cannot_smuggle_settings_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "check_java", lambda: None)
    with pytest.raises(InvalidSettingError, match=r"spark\.log\.level"):
        make_session("test", settings={"spark.log.level": "warn\nappender.x.type = Script"})


def test_a_remote_session_is_not_mixed_up_with_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "check_java", lambda: None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(InvalidSettingError, match="SPARK_REMOTE"):
        make_session("test")


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_session_tries_tasks_four_times_unless_told_how_often(given: str, made: str) -> None:
    assert spark_session._retrying(given) == made
    assert spark_session.local_cores(made) == spark_session.local_cores(given)
