"""The wheel: what is in it, what it asks for, and that it works where nothing else is installed."""

from __future__ import annotations

import os
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from wheel_building import REPOSITORY, Environment, build_wheel
from without_extras import run_without_extras

import semistream

JOIN = """
import pyarrow as pa, semistream as ss
master = ss.MasterTable.build(pa.table({"id": [1, 2], "v": [10, 20]}), "master", key="id")
joined = ss.join([pa.record_batch({"id": [2, 3, 1]})], master, on="id", memory="4MB").read_all()
print(sorted(joined.to_pylist(), key=str))
"""
JOINED = "[{'id': 1, 'v': 10}, {'id': 2, 'v': 20}]\n"
ENRICH = """
import semistream as ss
from semistream.spark.spark_session import make_session
spark = make_session("wheel", master="local[1]")
master = ss.MasterTable.build(spark.createDataFrame([(1, 10), (2, 20)], "id long, v long"), "master", key="id")
stream = spark.createDataFrame([(2,), (3,), (1,)], "id long")
print(sorted(tuple(row) for row in ss.enrich(stream, master, on="id", memory="8MB").collect()))
spark.stop()
"""
MEGABYTE = 1_000_000
OLDEST_PLATFORM = {"pyspark": "4.0.1", "py4j": "0.10.9.9", "numpy": "2.0.2", "pyarrow": "19.0.1", "pandas": "2.2.3"}
"""What a platform may have of its own: the oldest versions that are supported."""
TESTED_PLATFORM = {"pyspark": "", "pandas": ""}
"""The versions that all other tests run with."""


def _frozen(environment: Environment) -> dict[str, str]:
    lines = environment.run("python", "-m", "pip", "freeze").stdout.splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def metadata(unpacked: Path) -> Message:
    return HeaderParser().parsestr(_in_dist_info(unpacked, "METADATA"))


def _in_dist_info(unpacked: Path, name: str) -> str:
    return next(unpacked.glob("semistream-*.dist-info")).joinpath(name).read_text()


def _links(tokens: list[Token]) -> list[str]:
    """Return where links and images of a page lead."""
    found = [str(token.attrs.get("href") or token.attrs.get("src")) for token in tokens if token.type in _LEADING]
    return found + [link for token in tokens for link in _links(token.children or [])]


_LEADING = ("link_open", "image")


def test_without_extras_the_wheel_asks_for_four_packages(metadata: Message) -> None:
    asked = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(line.split(">")[0] for line in asked) == ["isal", "numba", "numpy", "pyarrow"]


def test_the_extras_are_those_that_errors_and_documents_name(metadata: Message) -> None:
    extras = {
        "spark",
        "cli",
        "lab",
        "object-store",
        "postgresql",
        "mysql",
        "all",
        "testing",
        "dev",
        "peers",
        "tpch",
        "flights",
    }
    assert set(metadata.get_all("Provides-Extra", [])) == extras


def test_the_version_is_that_of_the_package_and_no_project_addresses_are_given(metadata: Message) -> None:
    assert metadata["Version"] == semistream.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert "Project-URL" not in metadata
    assert "Home-page" not in metadata


def test_both_packages_are_complete_and_nothing_else_is_there(unpacked: Path) -> None:
    sources = REPOSITORY / "src"
    expected = {
        path.relative_to(sources)
        for kind in ("py", "toml", "css", "html", "js")
        for path in sources.glob(f"semistream*/**/*.{kind}")
    }
    expected |= {Path("semistream/py.typed"), Path("semistream_lab/py.typed")}
    there = {path.relative_to(unpacked) for path in unpacked.rglob("*") if path.is_file()}
    assert {path for path in there if not path.parts[0].endswith(".dist-info")} == expected
    assert any(path.match("semistream_lab/experiments/plans/*.toml") for path in there)


def test_the_command_and_the_lab_are_entry_points(unpacked: Path) -> None:
    points = _in_dist_info(unpacked, "entry_points.txt")
    assert "semistream = semistream.__main__:main" in points
    assert "lab = semistream_lab.cli.main:lab_app" in points


def test_the_description_has_nothing_that_a_package_index_cannot_show(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    tokens = MarkdownIt("commonmark").parse(metadata.get_payload())
    assert tokens[0].tag == "h1"
    assert [link for link in _links(tokens) if "://" not in link and not link.startswith("#")] == []
    assert {token.info for token in tokens if token.type == "fence"} <= {"sh", "python", "toml"}
    # Comments, which say why a block is not run by the tests, are not shown.
    html = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert [text for text in html if not (text.startswith("<!--") and text.endswith("-->"))] == []


def test_the_unpacked_wheel_joins_a_table_without_extras(unpacked: Path, tmp_path: Path) -> None:
    program = f"import os; os.chdir({str(tmp_path)!r})\n{JOIN}print(ss.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    done = run_without_extras(program, environment=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{JOINED}{unpacked / 'semistream' / '__init__.py'}\n"


@pytest.mark.slow
def test_an_install_without_extras_is_small_and_joins_a_table(wheel: Path, tmp_path: Path) -> None:
    environment = Environment.with_wheel(tmp_path / "environment", wheel)
    done = environment.run("python", "-c", JOIN, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == JOINED
    refused = environment.run("semistream", "--help")
    assert refused.returncode == 1
    assert refused.stderr.endswith("`pip install 'semistream[cli]'`.\n")
    assert environment.run("python", "-c", "import pyspark").returncode != 0
    size = environment.installed_bytes()
    print(f"installed without extras: {size / MEGABYTE:.0f} MB")
    assert size < 500 * MEGABYTE


@pytest.mark.slow
def test_an_install_for_spark_and_the_command_line_enriches_and_shows_help(wheel: Path, tmp_path: Path) -> None:
    environment = Environment.with_wheel(tmp_path / "environment", wheel, "[spark,cli]")
    shown = environment.run("semistream", "--help")
    assert shown.returncode == 0, shown.stderr
    assert all(command in shown.stdout for command in ("demo", "run", "master", "algorithms"))
    lab = environment.run("semistream", "lab", "bench")
    assert lab.returncode == 1
    assert lab.stderr.endswith("`pip install 'semistream[lab]'`.\n")
    done = environment.run("python", "-c", ENRICH, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[(1, 10), (2, 20)]\n"


@pytest.mark.slow
@pytest.mark.parametrize("platform", [OLDEST_PLATFORM, TESTED_PLATFORM], ids=["oldest", "tested"])
def test_an_install_next_to_pyspark_replaces_nothing_and_the_example_of_the_readme_writes_rows(
    wheel: Path, tmp_path: Path, platform: dict[str, str]
) -> None:
    packages = [f"{name}=={version}" if version else name for name, version in platform.items()]
    constrained = platform is TESTED_PLATFORM
    environment = Environment.with_packages(tmp_path / "environment", *packages, constrained=constrained)
    before = _frozen(environment)
    environment.install(str(wheel), constrained=constrained)
    after = _frozen(environment)
    assert {name: after.get(name) for name in before} == before
    assert {name: after[name] for name, version in platform.items() if version} == {
        name: version for name, version in platform.items() if version
    }
    print(f"added next to PySpark {after['pyspark']}: {sorted(after.items() - before.items())}")
    blocks = MarkdownIt("commonmark").parse((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    example = next(token.content for token in blocks if token.type == "fence" and token.info == "python")
    folder = tmp_path / "empty"
    folder.mkdir()
    done = environment.run("python", "-c", example, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "|product_id|quantity|price|" in done.stdout
    assert list((folder / "warehouse" / "sales").glob("*.parquet"))
