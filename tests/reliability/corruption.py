"""Any file of a table is damaged: every read gives the right rows, or an error that names what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from campaign import Case, Figures, Promise
from table_commands import Sample, content, rows_of, sample, save_hot_rows, saved_hot_rows
from watched_system import HastySystem

from semistream.core.errors import SemistreamError
from semistream.core.file_system import installed
from semistream.store.paged.versions import manifest, pins
from semistream.store.places.local_folder import LocalFolder

CASES = 105
DAMAGES_OF_A_CASE = 100
Damage = Callable[[bytes, np.random.Generator], bytes]


def _flipped(old: bytes, generator: np.random.Generator) -> bytes:
    new = bytearray(old)
    for place in generator.integers(len(old), size=generator.integers(1, 4)).tolist():
        new[place] ^= 1 << int(generator.integers(8))
    return bytes(new)


def _overwritten(old: bytes, generator: np.random.Generator) -> bytes:
    start = int(generator.integers(len(old)))
    part = generator.bytes(int(generator.integers(1, 200)))[: len(old) - start]
    return old[:start] + part + old[start + len(part) :]


def _zeroed(old: bytes, generator: np.random.Generator) -> bytes:
    start = int(generator.integers(len(old)))
    end = int(generator.integers(start, len(old))) + 1
    return old[:start] + bytes(end - start) + old[end:]


def _other_digit(old: bytes, generator: np.random.Generator) -> bytes:
    """Change a digit of a text into another, which a reader of JSON does not notice; a bit of anything else."""
    places = [place for place, byte in enumerate(old[:2000]) if 48 <= byte <= 57]
    if not places:
        return _flipped(old, generator)
    place = int(generator.choice(places))
    return old[:place] + b"%d" % generator.integers(10) + old[place + 1 :]


def _shifted(old: bytes, generator: np.random.Generator) -> bytes:
    start = int(generator.integers(len(old)))
    return old[:start] + old[start + 1 :] + b"\0"


DAMAGES: dict[str, Damage] = {
    "flip": _flipped,
    "overwrite": _overwritten,
    "zero": _zeroed,
    "digit": _other_digit,
    "shift": _shifted,
    "truncate": lambda old, generator: old[: generator.integers(len(old))],
    "extend": lambda old, generator: old + generator.bytes(int(generator.integers(1, 100))),
    "empty": lambda old, generator: b"" if generator.integers(2) else bytes(len(old)),
}


@installed(HastySystem())
def try_damages(folder: Path, seed: int, damages: int = DAMAGES_OF_A_CASE) -> Figures:
    """Damage files of a table, one at a time, and look at everything."""
    tried = _sample(folder)
    generator = np.random.default_rng(seed)
    outcomes: Counter[str] = Counter()
    paths = sorted(path for path in tried.path.rglob("*") if path.is_file() and path.name != "writer.lock")
    for number in range(damages):
        path = paths[int(generator.integers(len(paths)))]
        old = path.read_bytes()
        kind = str(generator.choice([*DAMAGES, "swap"]))
        if kind == "swap":
            alike = [other for other in paths if other.suffix == path.suffix and other != path]
            new = alike[int(generator.integers(len(alike)))].read_bytes()
        else:
            new = DAMAGES[kind](old, generator)
        if new == old:
            continue
        path.write_bytes(new)
        try:
            outcomes[_look(tried, is_newest=path.name == manifest.manifest_name(4))] += 1
        except BaseException as error:
            error.add_note(f"damage {number}: {kind} of {path.name}, {len(old)} bytes, now {len(new)}")
            raise
        path.write_bytes(old)
    _look(tried, is_newest=False)
    return {"damages": sum(outcomes.values()), **outcomes}


def _sample(folder: Path) -> Sample:
    tried = sample(folder / "t")
    pins.pin(LocalFolder(tried.path), "query", 7)
    pins.pin(LocalFolder(tried.path), "other", 6)
    save_hot_rows(tried.path, "of other columns", "another kind of cache")
    return tried


def _look(tried: Sample, *, is_newest: bool) -> str:
    """Read everything; say whether something was refused, and raise an error if something wrong was shown."""
    refused = 0
    for version, rows in tried.versions.items():
        refused += _is_refused(lambda version=version: content(tried.table, version), rows)
        refused += _is_refused(lambda version=version: tried.table.verify(version)["rows"], len(rows))
    newest_refused = _is_refused(lambda: content(tried.table), tried.versions[4])
    for query, batch, version in (("query", 6, 2), ("query", 7, 4), ("other", 6, 4)):
        refused += _is_refused(
            lambda query=query, batch=batch: pins.pin(LocalFolder(tried.path), query, batch), version
        )
    actual = set(saved_hot_rows(tried.path))
    assert actual in [set(), {f"saved {number}" for number in range(40)}], "other rows were saved"
    refused += not actual
    if newest_refused:
        _check_that_nothing_is_built_on_it(tried, is_newest=is_newest)
    return "refused" if refused or newest_refused else "harmless"


def _is_refused(look: Callable[[], object], expected: object) -> bool:
    try:
        actual = look()
    except SemistreamError:
        return True
    assert actual == expected, "wrong rows were shown without a word"
    return False


def _check_that_nothing_is_built_on_it(tried: Sample, *, is_newest: bool) -> None:
    """Damage of the newest version must not lead to the loss of its changes, least of all of its manifest."""
    before = {path: path.read_bytes() for path in tried.path.iterdir() if path.is_file()}
    merged = tried.versions[4] | {1: "more"}
    for work, after in (
        (lambda: tried.table.vacuum(keep_for=0), tried.versions[4]),
        (lambda: tried.table.merge(rows_of({1: "more"})), merged),
    ):
        if not _is_refused(lambda work=work: work() and None, None):
            assert not is_newest, "damage of the newest manifest was passed over"
            _is_refused(lambda: content(tried.table), after)
    for path in set(tried.path.iterdir()) - set(before):
        if path.is_file():
            path.unlink()
    for path, old in before.items():
        path.write_bytes(old)


def cases(seed: int) -> Iterator[Case]:
    """Make cases of a hundred damages each."""
    for number in range(CASES):
        place = seed * 100_000 + number
        yield Case(f"damages {number}", lambda folder, place=place: try_damages(folder, place))


def figure(all_figures: Sequence[Figures]) -> str:
    """Sum up."""
    damages, refused = (sum(figures.get(name, 0) for figures in all_figures) for name in ("damages", "refused"))
    return f"{damages:,} damages, {refused:,} refused by an error, the others harmless; 0 silent"


PROMISE = Promise(
    "corruption",
    "Whatever file of a table is damaged, a read gives the right rows or an error that names the file",
    cases,
    figure,
)
