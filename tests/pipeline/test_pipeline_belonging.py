"""A checkpoint meets a source, a master table or a sink: what belongs together goes on, all else is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from pipeline_runs import PRODUCTS, SmallPipeline, sale
from pyspark.sql import SparkSession

import semistream as ss
from semistream.pipeline import places, read_description
from semistream.pipeline.batch_numbers import BatchNumbers, local_names, names_by_spark
from semistream.pipeline.belonging import Belonging
from semistream.pipeline.failures import CheckpointMismatchError
from semistream.pipeline.planning import plan_pipeline
from semistream.pipeline.remembered import Belongings, read_remembered
from semistream.pipeline.sealed_json import DamagedFileError, read_sealed, write_sealed
from semistream.pipeline.written_folders import OWNER_NAME, Owner, own, owner_of

PIPELINE = """
[pipeline]
name = "made-up"
checkpoint = "state"
[source]
format = "json"
path = "incoming"
schema = "product_id BIGINT"
dead_letters = "letters"
[[dimension]]
table = "products"
on = "product_id"
[sink]
format = "parquet"
path = "warehouse"
"""


class MadeUp:
    """A project folder with logs as Spark would have left them, without Spark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.text = PIPELINE

    def logs(self, *, planned: int, finished: int, written: int, names: str = "{}") -> None:
        """Leave the log entries of a query that has come so far."""
        for log, newest in (("state/offsets", planned), ("state/commits", finished)):
            self._entries(log, newest, "{}")
        self._entries("warehouse/_spark_metadata", written, names)

    def letters(self, *, planned: int, written: int) -> None:
        """Leave dead letters."""
        self._entries("state/dead_letters/offsets", planned, "{}")
        self._entries("letters", written, "batch={:09d}")

    def _entries(self, log: str, newest: int, names: str) -> None:
        shutil.rmtree(self.folder / log, ignore_errors=True)
        (self.folder / log).mkdir(parents=True)
        (self.folder / log / f".{newest + 5}.tmp").touch()
        for number in range(newest + 1):
            (self.folder / log / names.format(number)).touch()

    def belonging(self, *, accept_moved: bool = False) -> Belonging:
        """Compare what is here with what is remembered here."""
        file = self.folder / "pipeline.toml"
        file.write_text(self.text)
        description = read_description(file)
        self.note = Path(description.checkpoint) / "then.json"
        remembered = read_sealed(self.note, 1)
        then = Belongings(**remembered[1]) if remembered else None
        return Belonging(description, then, accept_moved=accept_moved)

    def start(self, *, accept_moved: bool = False) -> None:
        """Do what a start does: compare, remember, own."""
        made = self.belonging(accept_moved=accept_moved)
        made.check()
        write_sealed(self.note, 1, asdict(made.now), replace=True)
        made.own_folders()


@pytest.fixture
def made_up(tmp_path: Path) -> MadeUp:
    """Return a project that was started for the first time."""
    project = MadeUp(tmp_path / "project")
    project.start()
    return project


@pytest.mark.parametrize(
    ("planned", "finished", "written"),
    [
        pytest.param(-1, -1, -1, id="nothing yet"),
        pytest.param(0, -1, -1, id="killed before the first write"),
        pytest.param(0, -1, 0, id="killed after the first write"),
        pytest.param(5, 5, 5, id="stopped cleanly"),
        pytest.param(6, 5, 5, id="killed before the write"),
        pytest.param(6, 5, 6, id="killed after the sink's commit"),
    ],
)
@pytest.mark.parametrize("names", ["{}", "{}.compact"])
def test_what_a_stop_or_a_kill_leaves_behind_goes_on(
    made_up: MadeUp, planned: int, finished: int, written: int, names: str
) -> None:
    made_up.logs(planned=planned, finished=finished, written=written, names=names)
    made_up.start()


@pytest.mark.parametrize(
    ("planned", "finished", "written", "says"),
    [
        pytest.param(0, 0, 5, "batches up to 5, but the checkpoint .* only up to 0", id="a checkpoint from a backup"),
        pytest.param(5, 5, 6, "batches up to 6, but the checkpoint .* only up to 5", id="one batch more"),
        pytest.param(-1, -1, 0, "restore that checkpoint", id="a checkpoint that was removed"),
        pytest.param(
            5, 5, 4, "finished batches up to 5, but the table .* ends with batch 4", id="a sink from a backup"
        ),
        pytest.param(0, 0, -1, "finished batches up to 0, but the table .* has none", id="an empty sink"),
    ],
)
@pytest.mark.parametrize("names", ["{}", "{}.compact"])
def test_numbers_of_batches_that_do_not_fit_are_refused_whatever_is_accepted(
    made_up: MadeUp, planned: int, finished: int, written: int, says: str, names: str
) -> None:
    made_up.logs(planned=planned, finished=finished, written=written, names=names)
    for accept_moved in (False, True):
        with pytest.raises(CheckpointMismatchError, match=says) as caught:
            made_up.belonging(accept_moved=accept_moved).check()
        assert "\n" not in str(caught.value)
        assert "restore" in str(caught.value)


def test_dead_letters_that_would_be_written_over_are_refused(made_up: MadeUp) -> None:
    made_up.logs(planned=3, finished=3, written=3)
    made_up.letters(planned=3, written=3)
    made_up.start()
    made_up.letters(planned=2, written=3)
    with pytest.raises(CheckpointMismatchError, match="dead letters of batch 3"):
        made_up.start()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"incoming"', '"arriving/*"', r"\[source\] path is .*arriving/\*, .* has read .*incoming, .*fileNameOnly"),
        ('format = "json"', 'format = "csv"', r"\[source\] is csv .* belongs to json .*"),
        ('"products"', '"articles"', r"\[\[dimension\]\] table is .*articles.* belongs to .*products"),
        ('format = "parquet"\npath = "warehouse"', 'format = "noop"', r"\[sink\] is noop.* belongs to parquet .*"),
    ],
)
def test_other_names_are_refused_until_they_are_accepted_and_then_remembered(
    made_up: MadeUp, old: str, new: str, says: str
) -> None:
    made_up.logs(planned=5, finished=5, written=5)
    made_up.start()
    made_up.text = made_up.text.replace(old, new)
    with pytest.raises(CheckpointMismatchError, match=says) as caught:
        made_up.start()
    assert "--accept-moved" in str(caught.value)
    assert "\n" not in str(caught.value)
    made_up.start(accept_moved=True)
    made_up.start()


@pytest.mark.parametrize(
    ("old", "new"), [('"incoming"', '"arriving"'), ('"products"', '"articles"'), ('"warehouse"', '"shop"')]
)
def test_names_may_be_mended_before_the_first_batch(made_up: MadeUp, old: str, new: str) -> None:
    made_up.text = made_up.text.replace(old, new)
    made_up.start()


def test_another_sink_is_refused_even_if_its_numbers_fit(made_up: MadeUp, tmp_path: Path) -> None:
    made_up.logs(planned=5, finished=5, written=5)
    made_up.start()
    other = MadeUp(tmp_path / "other")
    other.start()
    other.logs(planned=5, finished=5, written=5)
    made_up.text = made_up.text.replace('"warehouse"', f'"{other.folder / "warehouse"}"')
    for accept_moved in (False, True):
        with pytest.raises(CheckpointMismatchError, match=r"belongs to the checkpoint that was at .*other/state"):
            made_up.start(accept_moved=accept_moved)


def test_the_first_batch_of_another_table_is_not_taken_for_ours(made_up: MadeUp) -> None:
    made_up.logs(planned=0, finished=-1, written=-1)
    (made_up.folder / "shop" / "_spark_metadata").mkdir(parents=True)
    (made_up.folder / "shop" / "_spark_metadata" / "0").touch()
    made_up.text = made_up.text.replace('"warehouse"', '"shop"')
    with pytest.raises(CheckpointMismatchError, match=r"\[sink\] is parquet .*/shop"):
        made_up.start()


def test_of_two_new_checkpoints_one_gets_the_sink(made_up: MadeUp) -> None:
    made_up.text = made_up.text.replace('"state"', '"state_2"').replace('"letters"', '"letters_2"')
    with pytest.raises(CheckpointMismatchError, match=r"belongs to the checkpoint that was at .*/state, not"):
        made_up.start()
    shutil.rmtree(made_up.folder / "warehouse")
    second = made_up.belonging()
    second.check()  # both compared before either took the folder
    own(made_up.folder / "warehouse", Owner("first", "elsewhere"))
    with pytest.raises(CheckpointMismatchError, match="elsewhere"):
        second.own_folders()


def test_a_sink_without_a_note_of_its_owner_is_known_by_its_place(made_up: MadeUp) -> None:
    made_up.logs(planned=5, finished=5, written=5)
    (made_up.folder / "warehouse" / OWNER_NAME).unlink()
    made_up.start()
    assert owner_of(made_up.folder / "warehouse") is not None
    (made_up.folder / "warehouse" / OWNER_NAME).unlink()
    (made_up.folder / "warehouse").rename(made_up.folder / "shop")
    made_up.text = made_up.text.replace('"warehouse"', '"shop"')
    with pytest.raises(CheckpointMismatchError, match=r"\[sink\] is parquet .*/shop"):
        made_up.start()
    made_up.start(accept_moved=True)


def test_a_checkpoint_that_was_removed_before_its_first_batch_may_begin_again(made_up: MadeUp) -> None:
    shutil.rmtree(made_up.folder / "state")
    made_up.start()
    made_up.logs(planned=0, finished=0, written=0)
    made_up.start()


@pytest.mark.parametrize("accept_moved", [False, True])
def test_another_folder_of_files_is_refused_because_spark_cannot_go_on_in_it(
    made_up: MadeUp, accept_moved: bool
) -> None:
    made_up.logs(planned=5, finished=5, written=5)
    made_up.start()
    made_up.folder = made_up.folder.rename(made_up.folder.with_name("moved"))
    with pytest.raises(CheckpointMismatchError, match="symbolic link"):
        made_up.start(accept_moved=accept_moved)
    made_up.text = made_up.text.replace('"incoming"', f'"{made_up.folder.with_name("project")}/incoming"')
    made_up.start()


def test_files_that_are_known_by_their_names_may_be_moved(made_up: MadeUp) -> None:
    made_up.text = made_up.text.replace('"incoming"', '"incoming/*"\noptions = { fileNameOnly = true }')
    made_up.start()
    made_up.logs(planned=5, finished=5, written=5)
    made_up.folder = made_up.folder.rename(made_up.folder.with_name("moved"))
    made_up.start()


def test_a_moved_project_with_generated_sales_goes_on_and_other_sales_are_refused(tmp_path: Path) -> None:
    project = MadeUp(tmp_path / "project")
    before, after = project.text.split("[source]")[0], project.text.split("[[dimension]]")[1]
    project.text = (
        f'{before}[source]\nformat = "sales"\noptions = {{ products = 5, partitions = 1 }}\n[[dimension]]{after}'
    )
    project.start()
    project.logs(planned=2, finished=2, written=2)
    project.folder = project.folder.rename(tmp_path / "moved")
    project.text = project.text.replace("partitions = 1", "partitions = 2")
    project.start()
    project.text = project.text.replace("products = 5", "products = 6")
    with pytest.raises(CheckpointMismatchError, match=r"\[source\] is sales"):
        project.start()


def test_a_link_to_the_master_table_is_the_same_table(made_up: MadeUp) -> None:
    made_up.logs(planned=5, finished=5, written=5)
    made_up.start()
    (made_up.folder / "alias").symlink_to(made_up.folder / "products")
    made_up.text = made_up.text.replace('"products"', '"alias"')
    made_up.start()


def test_every_damaged_byte_of_what_is_remembered_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    content = {"id": "5", "sink": {"path": "a/b", "format": "parquet"}}
    write_sealed(path, 2, content, replace=True)
    whole = path.read_bytes().rstrip()
    for place in range(len(whole)):
        for flipped in (1, 2, 16, 64):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ flipped]) + whole[place + 1 :])
            try:
                sealed = read_sealed(path, 2)
            except DamagedFileError:
                continue
            assert sealed is not None
            assert sealed[0] < 2 or sealed == (2, content), f"byte {place}"
        path.write_bytes(whole[:place])
        with pytest.raises(DamagedFileError):
            read_sealed(path, 2)


def _restored_backup(small: SmallPipeline) -> None:
    shutil.rmtree(small.folder / "state")
    (small.folder / "backup").rename(small.folder / "state")


def _emptied_sink(small: SmallPipeline) -> None:
    shutil.rmtree(small.folder / "warehouse")


def _another_sink(small: SmallPipeline) -> None:
    small.parts["sink"] = 'format = "parquet"\npath = "shop"'


def _another_source(small: SmallPipeline) -> None:
    shutil.copytree(small.incoming, small.folder / "arriving")
    small.parts["source"] = small.parts["source"].replace('"incoming"', '"arriving"')


def _another_master(small: SmallPipeline) -> None:
    ss.MasterTable.build(PRODUCTS, small.folder / "articles", key="product_id")
    small.parts["dimension"] = small.parts["dimension"].replace("products", "articles")


@pytest.mark.parametrize(
    "change",
    [_restored_backup, _emptied_sink, _another_sink, _another_source, _another_master],
    ids=lambda f: f.__name__,
)
def test_a_checkpoint_that_meets_something_else_is_refused_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, change: Callable[[SmallPipeline], None]
) -> None:
    small = SmallPipeline(spark, tmp_path / "small")
    small.build()
    small.arrive("0.json", [sale(0, 1)])
    small.run()
    shutil.copytree(small.folder / "state", small.folder / "backup")
    for number in range(1, 3):
        small.arrive(f"{number}.json", [sale(number, 2)])
    small.run()
    change(small)
    small.arrive("3.json", [sale(3, 3)])
    before = {path: path.stat().st_mtime_ns for path in small.folder.rglob("*") if path.is_file()}
    with pytest.raises(CheckpointMismatchError):
        plan_pipeline(spark, small.description)
    with pytest.raises(CheckpointMismatchError):
        small.run()
    ours = {small.folder / "pipeline.toml", *(small.folder / "state").glob(".semistream.*lock")}
    after = {path: path.stat().st_mtime_ns for path in small.folder.rglob("*") if path.is_file()}
    assert {path: time for path, time in after.items() if path not in ours} == {
        path: time for path, time in before.items() if path not in ours
    }


def test_batches_of_places_that_only_spark_can_list_are_compared_too(
    spark: SparkSession, made_up: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up.letters(planned=2, written=1)
    made_up.logs(planned=5, finished=4, written=5)
    made_up.belonging()
    description = read_description(made_up.folder / "pipeline.toml")
    assert BatchNumbers.read(description, names_by_spark(spark)) == BatchNumbers.read(description, local_names)
    assert names_by_spark(spark)(str(made_up.folder / "nowhere")) == []

    # As if the sink were in a store of another machine.
    ss.MasterTable.build(PRODUCTS, made_up.folder / "products", key="product_id")
    (made_up.folder / "incoming").mkdir()
    monkeypatch.setattr(places, "is_local", lambda place: "warehouse" not in place)
    plan_pipeline(spark, description)
    made_up.logs(planned=0, finished=0, written=5)
    with pytest.raises(CheckpointMismatchError, match="batches up to 5"):
        plan_pipeline(spark, description)


def test_a_checkpoint_from_before_names_were_remembered_goes_on_and_then_remembers_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    small = SmallPipeline(spark, tmp_path / "small")
    small.build()
    small.arrive("0.json", [sale(0, 1)])
    small.run()
    state = small.folder / "state"
    remembered = read_remembered(state)
    assert remembered is not None
    old = {"format": 1, "join": remembered.joins[0], "columns": remembered.columns[0]}
    (state / "semistream.json").write_text(json.dumps(old))
    (small.folder / "warehouse" / OWNER_NAME).unlink()
    small.build(PRODUCTS.append_column("colour", PRODUCTS["name"]))
    small.arrive("1.json", [sale(1, 2)])
    small.run()
    assert [set(row) for row in small.written()] == [{"sale_id", "product_id", "quantity", "name", "price"}] * 2
    belongings = read_remembered(state)
    assert belongings is not None
    assert belongings.belongings is not None
    owner = owner_of(small.folder / "warehouse")
    assert owner is not None
    assert owner.id == belongings.belongings.id
