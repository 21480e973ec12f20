"""What every place must do; a new kind of place adopts it by a subclass that says how one is made."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod

import pytest

from semistream.store.places.place import Place
from semistream.store.saved_rows import NewRows

_NUMBERED = re.compile(r"manifest-(\d+)\.json")


def name_of(number: int) -> str:
    """Return the name of a numbered object."""
    return f"manifest-{number}.json"


def number_in(name: str) -> int | None:
    """Return the number in a name."""
    match = _NUMBERED.fullmatch(name)
    return int(match[1]) if match else None


class PlaceContract(ABC):
    """The obligations of `Place`."""

    @abstractmethod
    def make(self) -> Place:
        """Return an empty place."""

    @pytest.fixture
    def place(self) -> Place:
        place = self.make()
        place.make(lambda _: False, lambda _: False)
        return place

    def test_an_object_is_read_as_it_was_put(self, place: Place) -> None:
        for name in ("one", "pins/query/1.json"):
            assert place.put_new(name, b"content")
            assert place.read(name) == b"content"
            assert place.read(name, max_bytes=6) == b""
            status = place.status(name)
            assert status is not None
            assert status.size_bytes == 7

    def test_what_is_not_there_is_said_to_be_missing(self, place: Place) -> None:
        assert place.status("none") is None
        assert place.statuses(["none", "nor", "this", "one"]) == {}
        for read in (place.read, place.lease):
            with pytest.raises(FileNotFoundError) as missing:
                read("none")
            assert missing.value.filename == place.shown("none")
        place.remove("none")
        assert place.names("no folder") == []
        assert place.folders("no folder") == []

    def test_a_put_never_replaces_an_object(self, place: Place) -> None:
        assert place.put_new("name", b"first")
        assert not place.put_new("name", b"second")
        assert place.read("name") == b"first"

    def test_of_many_that_put_one_name_one_wins(self, place: Place) -> None:
        won: list[int] = []
        barrier = threading.Barrier(8)

        def put(number: int) -> None:
            barrier.wait()
            if place.put_new("name", b"%d" % number):
                won.append(number)

        threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert place.read("name") == b"%d" % won[0]

    def test_names_are_those_of_one_folder(self, place: Place) -> None:
        for name in ("a-1", "a-2", "b-1", "pins/x/1.json", "pins/x/2.json", "pins/y/1.json"):
            place.put_new(name, b"-")
        assert {"a-1", "a-2", "b-1"} <= set(place.names()) <= {"a-1", "a-2", "b-1", "pins"}
        assert sorted(place.names(starting="a-")) == ["a-1", "a-2"]
        assert sorted(place.names("pins/x")) == ["1.json", "2.json"]
        assert place.folders("pins") == ["x", "y"]
        assert sorted(place.statuses(["a-1", "a-2", "b-1", "c"])) == ["a-1", "a-2", "b-1"]

    def test_a_removed_object_is_gone(self, place: Place) -> None:
        place.put_new("name", b"-")
        place.remove("name")
        place.remove_if_possible("name")
        place.settle()
        assert place.names() == []

    def test_the_newest_number_is_found_with_and_without_a_hint(self, place: Place) -> None:
        assert place.newest(name_of, number_in) is None
        for number in range(1, 60):
            place.put_new(name_of(number), b"-")
            if number in (1, 2, 50, 59):
                assert place.newest(name_of, number_in) == number
        with place.turn() as turn:
            turn.note_number(40)
            turn.note_commit(40)
        assert place.newest(name_of, number_in) == 59
        assert (turn.highest_number() if place.promises.locks_writers is False else 40) == 40
        for number in range(1, 60):
            place.remove(name_of(number))
        place.put_new(name_of(7), b"-")
        assert place.newest(name_of, number_in) == 7

    def test_a_large_object_has_its_name_when_it_is_finished(self, place: Place) -> None:
        content = bytes(range(256)) * 70_000
        target = place.new_object("large")
        for start in range(0, len(content), 1 << 20):
            target.write(content[start : start + (1 << 20)])
        target.finish()
        target.close()
        assert place.read("large") == content
        with place.stream("large") as file:
            assert file.read() == content

    def test_what_is_discarded_or_set_aside_leaves_nothing(self, place: Place) -> None:
        target = place.new_object("some")
        target.write(b"1234")
        target.discard()
        aside = place.new_object("other")
        aside.write(b"1234")
        aside.set_aside("token-x").discard()
        scratch = place.scratch("token-y")
        scratch.write(b"1234")
        scratch.discard()
        assert place.names() == []

    def test_an_object_is_replaced_as_a_whole(self, place: Place) -> None:
        def write(rows: NewRows) -> None:
            rows.write(b"????new")
            rows.write_start(b"ever")

        place.replace("hot/rows", lambda rows: rows.write(b"old") and None)
        place.replace("hot/rows", write)
        assert place.read("hot/rows") == b"evernew"
        with pytest.raises(ZeroDivisionError):
            place.replace("hot/rows", lambda rows: rows.write(b"half") and 1 / 0)  # type: ignore[arg-type, return-value]
        assert place.read("hot/rows") == b"evernew"

    def test_whoever_holds_an_object_knows_that_it_is_there(self, place: Place) -> None:
        place.put_new("name", b"content")
        with place.lease("name") as lease:
            assert lease.content() == b"content"
            assert lease.still_there()
            alone = place.taken_alone("name")
            # Either nobody can begin to remove it, or whoever holds it is told.
            assert alone is None or not lease.still_there()
            if alone is not None:
                alone.release()
            assert lease.still_there()
        alone = place.taken_alone("name")
        assert alone is not None
        place.remove("name")
        alone.release()
        with pytest.raises(FileNotFoundError):
            place.lease("name")
