"""The entry: help, version, misuse, interrupts, and what is imported when."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import fail, run, succeed

import semistream
from semistream.cli.one_sentence import sentence

HEAVY = {"numpy", "pyarrow", "numba"}


def _process(*arguments: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from semistream.__main__ import main; main()", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(
    "arguments", [["--help"], [], ["lab", "bench", "--help"], ["master", "build", "--help"], ["--version"]]
)
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from semistream.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        f"print('heavy:', sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout


def test_help_names_every_command() -> None:
    shown = succeed("--help")
    assert all(name in shown for name in ("algorithms", "lab", "master", "--debug", "--version"))


def test_without_a_command_help_is_shown() -> None:
    assert "Usage" in succeed()
    assert "vacuum" in succeed("master")


def test_version_is_the_version_of_the_package() -> None:
    assert succeed("--version") == f"semistream {semistream.__version__}\n"


def test_an_unknown_command_is_a_misuse() -> None:
    assert fail("benhc", code=2).startswith("No such command 'benhc'")


def test_an_unknown_option_is_a_misuse_that_names_the_help() -> None:
    said = fail("lab", "bench", "--tulpes", "5", code=2)
    assert said.startswith("No such option: --tulpes")
    assert said.endswith("see `semistream lab bench --help`.")


def test_a_missing_argument_is_a_misuse() -> None:
    assert "SOURCE" in fail("master", "build", code=2)


@pytest.mark.parametrize("place", [0, 4])
def test_debug_shows_the_traceback_wherever_it_stands(place: int) -> None:
    arguments = ["lab", "bench", "--algorithm", "quickjoin"]
    arguments.insert(place, "--debug")
    process = _process(*arguments)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" in shown
    assert "UnknownAlgorithmError" in shown


def test_an_error_of_the_system_is_a_sentence_with_the_path() -> None:
    said = sentence(PermissionError(13, "Permission denied", "/locked"))
    assert said == "The system refuses /locked: permission denied; check the path, its permissions and the disk."


def test_an_unexpected_error_says_how_to_see_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("two\nlines")

    monkeypatch.setattr("semistream_lab.cli.bench_runs.run", broken)
    said = fail("lab", "bench", "--algorithm", "cachejoin")
    assert said.startswith("Something unexpected happened (ValueError: two lines)")
    assert "--debug" in said


def test_an_interrupt_ends_with_code_130_and_a_short_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("semistream_lab.cli.bench_runs.run", interrupted)
    result = run("lab", "bench", "--algorithm", "cachejoin")
    assert result.exit_code == 130
    assert result.stderr == "Stopped by Ctrl-C.\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_bench_and_leave_no_files(tmp_path: Path, number: signal.Signals, code: int) -> None:
    process = _process(
        *("lab", "bench", "--algorithm", "hybridjoin", "--seconds", "600", "--store", "file", "--master-rows", "20000"),
        *("--memory", "2MB"),
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stderr is not None
    line = process.stderr.readline()  # the first progress, so that the run has begun
    if line.startswith("semistream compiles"):
        line = process.stderr.readline()
    assert line.startswith("hybridjoin")
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in said
    assert not list(tmp_path.glob("semistream-bench-*"))


_STOPPED_IN_A_FINALIZER = """
import os, sys, time, weakref
from semistream.cli import interruption
class Thing: ...
interruption.install()
thing = Thing()
weakref.finalize(thing, lambda: (os.kill(os.getpid(), int(sys.argv[1])), [None for _ in range(1000)]))
try:
    del thing
    time.sleep(30)
finally:
    print("cleaned up")
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -2), (signal.SIGTERM, 143)])
def test_a_signal_is_not_lost_where_python_drops_exceptions(number: signal.Signals, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED_IN_A_FINALIZER, str(int(number))], capture_output=True, text=True, timeout=9
    )
    assert done.stdout == "cleaned up\n"
    assert done.returncode == code
    assert "Exception ignored" not in done.stderr


_STOPPED_WHILE_A_KERNEL_IS_LOADED = """
import os, sys, time
import numpy as np
from numba.core.codegen import JITCodeLibrary
from semistream.cli import interruption
from semistream.store.sparse_index import SparseIndex
load = JITCodeLibrary.get_pointer_to_function
def interrupted(self, name):
    os.kill(os.getpid(), int(sys.argv[1]))
    pointer = load(self, name)
    print("loaded", flush=True)
    return pointer
JITCodeLibrary.get_pointer_to_function = interrupted
interruption.install()
try:
    SparseIndex(np.arange(9)).locate(np.arange(9))
    time.sleep(30)
finally:
    print("cleaned up")
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -2), (signal.SIGTERM, 143)])
def test_a_signal_waits_until_a_kernel_is_loaded(number: signal.Signals, code: int) -> None:
    """An exception in the middle leaves machine code without an address, and the process crashes."""
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED_WHILE_A_KERNEL_IS_LOADED, str(int(number))],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("loaded\n"), done.stderr
    assert done.stdout.endswith("cleaned up\n")
    assert done.returncode == code


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    process = _process("algorithms", "--json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.wait(timeout=60)
    assert "Traceback" not in said


@pytest.mark.parametrize("arguments", ["algorithms", "algorithms --json", "--version"])
def test_a_closed_standard_output_is_no_error(arguments: str) -> None:
    command = f"exec {sys.executable} -m semistream {arguments} >&-"
    done = subprocess.run(["/bin/sh", "-c", command], stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        *(
            ["master", name]
            for name in ("build", "merge", "info", "verify", "compact", "recluster", "restore", "vacuum")
        ),
        *([name] for name in ("advise", "algorithms", "demo", "run", "warmup")),
        *(["lab", name] for name in ("bench", "tune", "calibrate", "list", "run", "report", "peers")),
    ],
)
def test_help_shows_arguments_and_values_by_plain_names(command: list[str]) -> None:
    shown = succeed(*command, "--help")
    assert "{" not in shown
    for word in ("<str>", "<int", "<path>", "<list", "<float", "<bool>"):
        assert word not in shown, word


@pytest.mark.parametrize("width", ["80", "120"])
def test_help_says_defaults_in_one_piece_and_in_words(monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    shown = succeed("advise", "--help")
    assert "[default: 16MB,64MB,256MB]" in shown
    assert "[default: 1,000,000; at least 1]" in shown
    assert "\n  PATH  The directory" in succeed("master", "info", "--help")


@pytest.mark.parametrize("group", [[], ["master"], ["lab"]])
def test_the_list_of_commands_has_whole_sentences(group: list[str]) -> None:
    listed = succeed(*group, "--help").partition("Commands:")[2]
    assert all(line.endswith(".") and not line.endswith("...") for line in listed.splitlines() if line.strip())
