"""Profiles in files, the processor's constants, and a whole calibration."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semistream.core.costs import PAPERS, PROFILES, CostProfile
from semistream.core.errors import CorruptTableError, InvalidSettingError, MasterNotFoundError, SemistreamError
from semistream.master_table import MasterTable
from semistream.store.memory import MemoryStore
from semistream_lab.cost.calibration import build_scratch_table, calibrate
from semistream_lab.cost.machine import Machine, this_machine
from semistream_lab.cost.processor_times import ProcessorCosts, measure_processor
from semistream_lab.cost.profile_files import Evidence, find_profile, load_profile, save_profile
from semistream_lab.cost.request_times import RequestTime

NUMBERS = [field.name for field in fields(CostProfile) if field.type == "float"]
costs = st.floats(0, 1e3)
profiles = st.builds(
    CostProfile,
    name=st.text(max_size=10),
    bytes_per_second=st.floats(1, 1e12),
    max_in_flight=st.integers(1, 1000),
    **{name: costs for name in NUMBERS if name != "bytes_per_second"},
)
EVIDENCE = Evidence(
    Machine("a processor", 2, "ext4"), "2026-01-02T03:04:05+00:00", True, (RequestTime(8192, 4, False, 500.0),)
)


@given(profile=profiles)
def test_a_saved_profile_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, profile: CostProfile) -> None:
    path = tmp_path_factory.mktemp("profile") / "measured.json"
    save_profile(profile, path, EVIDENCE)
    assert load_profile(path) == profile
    assert [file.name for file in path.parent.iterdir()] == ["measured.json"]


def test_a_file_tells_its_version_the_machine_and_every_measured_request(tmp_path: Path) -> None:
    save_profile(PAPERS, tmp_path / "p.json", EVIDENCE)
    content = json.loads((tmp_path / "p.json").read_text())
    assert (content["format"], content["version"]) == ("semistream cost profile", 1)
    assert content["profile"].pop("most_in_flight") == PAPERS.max_in_flight
    assert content["profile"] == {
        name: value for name, value in asdict(PAPERS).items() if name not in ("max_in_flight", "shares_bandwidth")
    }
    assert content["machine"] == {"cpu": "a processor", "cores": 2, "file_system": "ext4"}
    assert content["measured_at"] == "2026-01-02T03:04:05+00:00"
    assert content["direct"] is True
    assert content["requests"] == [
        {"size_bytes": 8192, "in_flight": 4, "sequential": False, "requests_per_second": 500.0, "seconds": 0.008}
    ]


def test_a_file_without_the_constants_of_real_time_is_read_as_the_papers_count(tmp_path: Path) -> None:
    save_profile(PAPERS, tmp_path / "p.json")
    content = json.loads((tmp_path / "p.json").read_text())
    for name in ("round_seconds", "answer_seconds", "row_seconds"):
        del content["profile"][name]
    (tmp_path / "p.json").write_text(json.dumps(content))
    assert load_profile(tmp_path / "p.json") == PAPERS


def test_a_profile_without_evidence_is_a_profile(tmp_path: Path) -> None:
    save_profile(PAPERS, tmp_path / "p.json")
    assert load_profile(tmp_path / "p.json") == PAPERS


def test_a_profile_is_found_by_a_shipped_name_or_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(find_profile(name) is profile for name, profile in PROFILES.items())
    monkeypatch.chdir(tmp_path)
    measured = CostProfile(**{**asdict(PAPERS), "name": "mine"})
    save_profile(measured, "mine")
    for path in ("mine", "./mine", str(tmp_path / "mine")):
        assert find_profile(path) == measured
    save_profile(measured, "papers")
    assert find_profile("papers") is PAPERS, "a shipped name wins"
    assert find_profile("./papers") == measured


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "tape",
            "There is no cost profile 'tape': choose one of papers, papers-connections, papers-slow-processor, "
            "papers-ssd, remote, remote-20ms, ssd, or give a file",
        ),
        ("tape.json", "The profile tape.json cannot be read (no such file or directory): give a file that"),
        ("nowhere/tape", "The profile nowhere/tape cannot be read (no such file or directory): give a file that"),
        (".", "The profile . cannot be read (is a directory): give a file that"),
    ],
)
def test_a_profile_that_is_nowhere_is_one_sentence(name: str, message: str) -> None:
    with pytest.raises(InvalidSettingError) as raised:
        find_profile(name)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[]", b"7", b'{"format": "other"}', b"[" * 100_000, b'{"version": 1}']
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.json").write_bytes(content)
    with pytest.raises(CorruptTableError, match=r"p\.json is not a cost profile: give a file that `semistream"):
        load_profile(tmp_path / "p.json")


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_format_version_is_refused_with_both_versions(tmp_path: Path, version: Any) -> None:
    _changed(tmp_path / "p.json", lambda content: content.update(version=version))
    with pytest.raises(CorruptTableError, match=f"has the format version {version!r}, but .* reads 1: calibrate again"):
        load_profile(tmp_path / "p.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in NUMBERS[:3] for value in (-1.0, float("nan"), float("inf"), "1", None, True, [])),
        ("bytes_per_second", 0),
        ("most_in_flight", 0),
        ("most_in_flight", 1.5),
        ("most_in_flight", True),
        ("name", 7),
        ("something", 1.0),
    ],
)
def test_a_damaged_constant_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    _changed(tmp_path / "p.json", lambda content: content["profile"].update({name: value}))
    with pytest.raises(CorruptTableError, match=r"p\.json is damaged: calibrate again"):
        load_profile(tmp_path / "p.json")


@pytest.mark.parametrize("name", ["name", "seek_seconds", "most_in_flight"])
def test_a_missing_constant_is_refused(tmp_path: Path, name: str) -> None:
    _changed(tmp_path / "p.json", lambda content: content["profile"].pop(name))
    with pytest.raises(CorruptTableError, match="is damaged"):
        load_profile(tmp_path / "p.json")


def test_a_profile_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match=r"cannot be written \(no such file or directory\): name a file"):
        save_profile(PAPERS, tmp_path / "nowhere" / "p.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidSettingError, match="cannot be written"):
        save_profile(PAPERS, tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_the_machine_is_described_without_its_name(tmp_path: Path) -> None:
    machine = this_machine(tmp_path / "not there")
    assert machine.cpu
    assert machine.cores >= 1
    assert machine.file_system
    assert this_machine(Path("/proc/self")).file_system == "proc"


@pytest.mark.parametrize(
    "store",
    [
        MemoryStore.of_codes(5, row_bytes=120),
        MemoryStore.of_codes(30_000, row_bytes=120),
        MemoryStore(pa.table({"key": ["a", "b", "b", "c"], "price": [1.0, 2.0, 3.0, None]}), "key", on_duplicate="all"),
    ],
)
def test_every_constant_of_the_processor_is_measured(store: MemoryStore) -> None:
    reports: list[tuple[int, int | None]] = []
    actual = measure_processor(
        store, tuples=500, repeats=2, progress=lambda _, done, total: reports.append((done, total))
    )
    assert set(asdict(actual)) == {field.name for field in fields(ProcessorCosts)} < set(asdict(PAPERS))
    assert all(0 < seconds < 1 for seconds in asdict(actual).values())
    assert reports == [(0, 3), (1, 3), (2, 3)]


def test_the_processor_needs_a_table_with_rows() -> None:
    with pytest.raises(InvalidSettingError, match="no keys to time"):
        measure_processor(MemoryStore(pa.table({"key": pa.array([], pa.int64())}), "key"))


@pytest.mark.parametrize("direct", [None, False])
def test_a_calibration_gives_a_profile_that_can_be_saved(tmp_path: Path, direct: bool | None) -> None:
    table = build_scratch_table(tmp_path / "scratch", 2_000_000)
    assert table.info()["rows"] == 2_000_000 // 120
    calibration = calibrate(table, name="mine", direct=direct)
    assert calibration.profile.name == "mine"
    assert calibration.evidence.requests
    if direct is False:
        assert not calibration.evidence.direct
    save_profile(calibration.profile, tmp_path / "p.json", calibration.evidence)
    assert find_profile(str(tmp_path / "p.json")) == calibration.profile


def test_without_a_wish_a_file_system_that_refuses_direct_reads_is_read_through_its_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = build_scratch_table(tmp_path / "scratch", 200_000)
    opened = MasterTable.open

    def refusing(self: MasterTable, version: int | None = None, direct: bool = False) -> Any:
        if direct:
            raise SemistreamError("The file system refuses direct reads.")
        return opened(self, version)

    monkeypatch.setattr(MasterTable, "open", refusing)
    assert not calibrate(table).evidence.direct
    with pytest.raises(SemistreamError, match="refuses direct reads"):
        calibrate(table, direct=True)


def test_a_table_that_is_not_there_is_an_error_however_it_is_read(tmp_path: Path) -> None:
    for direct in (None, True, False):
        with pytest.raises(MasterNotFoundError):
            calibrate(MasterTable(tmp_path / "nowhere"), direct=direct)
    with pytest.raises(InvalidSettingError, match="has no row: give a larger size"):
        build_scratch_table(tmp_path / "scratch", 100)


def _changed(path: Path, change: Any) -> None:
    save_profile(PAPERS, path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
