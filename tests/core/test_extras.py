"""What is said where a package of an extra is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from without_extras import run_without_extras

from semistream.core.errors import MissingExtraError, SemistreamError
from semistream.core.extras import require


def test_the_error_is_one_sentence_that_names_the_extra() -> None:
    with pytest.raises(MissingExtraError) as raised:
        require("no_such_package", extra="spark", purpose="Work on Spark")
    assert str(raised.value) == (
        "Work on Spark needs the package no_such_package, which is not installed: `pip install 'semistream[spark]'`."
    )
    assert isinstance(raised.value, SemistreamError)
    assert isinstance(raised.value, ImportError)
    assert raised.value.name == "no_such_package"


def test_what_is_installed_passes_without_being_imported() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from semistream.core.extras import require\n"
            "require('pyspark', extra='spark', purpose='It'); assert 'pyspark' not in sys.modules",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_table_is_built_and_joined_without_any_extra() -> None:
    done = run_without_extras(
        "import tempfile, pyarrow as pa, semistream as ss\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    master = ss.MasterTable.build(pa.table({'id': [1, 2], 'v': [10, 20]}), folder + '/m', key='id')\n"
        "    stream = [pa.record_batch({'id': [2, 3, 1]})]\n"
        "    joined = ss.join(stream, master, on='id', memory='4MB').read_all()\n"
        "    print(sorted(joined.to_pylist(), key=str))\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[{'id': 1, 'v': 10}, {'id': 2, 'v': 20}]\n"


@pytest.mark.parametrize(
    ("statement", "extra"),
    [
        ("import semistream; semistream.enrich", "spark"),
        ("from semistream import enrich", "spark"),
        ("import semistream.pipeline", "spark"),
        ("import semistream.cli.main", "cli"),
        ("import semistream_lab.cost", "lab"),
        ("import semistream.testing.strategies", "testing"),
    ],
)
def test_importing_what_is_not_installed_names_its_extra(statement: str, extra: str) -> None:
    done = run_without_extras(
        "from semistream.core.errors import MissingExtraError\n"
        f"try:\n    {statement}\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    assert done.returncode == 0, done.stderr
    assert f"`pip install 'semistream[{extra}]'`" in done.stdout


def test_the_command_without_its_extra_is_one_sentence_and_a_failure() -> None:
    done = run_without_extras("from semistream.__main__ import main; main()", "--help")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: The command line needs the package typer, which is not installed: `pip install 'semistream[cli]'`.\n"
    )
