"""Shows what a calibration has measured: requests by size, and the constants."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from semistream.cli.rendering import console, is_plain, plain_table
from semistream.core.costs import CostProfile
from semistream_lab.cost.calibration import Calibration
from semistream_lab.cost.request_times import RequestTime

_CONSTANTS = (
    ("c_H", "probe_seconds", "look a tuple up in the cache"),
    ("c_O", "output_seconds", "match a tuple and copy its master row"),
    ("c_E", "remove_seconds", "remove a waiting tuple"),
    ("c_S", "take_seconds", "find an arriving tuple's page group"),
    ("c_A", "append_seconds", "let a tuple wait"),
    ("c_F", "frequency_seconds", "count how often a key is asked for"),
    ("c_AI", "hand_over_seconds", "hand a tuple to the other phase"),
)
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def show(calibration: Calibration) -> None:
    """Print the measured requests, what was fitted to them, and the processor's constants."""
    out = console()
    plain = is_plain(out)
    machine = calibration.evidence.machine
    how = "past the page cache" if calibration.evidence.direct else "through the page cache"
    out.print()
    out.print("What reads and the parts of a join cost on this machine", style="bold")
    out.print(f"{machine.cpu}, {machine.cores} cores, {machine.file_system}, read {how}", style="dim", markup=False)
    out.print()
    out.print(_requests(calibration.evidence.requests, plain=plain))
    out.print()
    out.print(_constants(calibration.profile, plain=plain))


def in_units(seconds: float, *, plain: bool = False) -> str:
    """Return a duration for people, e.g. "95.3 µs"."""
    factor, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{seconds / factor:.3g} {unit.replace('µ', 'u') if plain else unit}"


def _requests(measured: tuple[RequestTime, ...], *, plain: bool) -> Table:
    counts = sorted({request.in_flight for request in measured if not request.sequential})
    table = plain_table(title="Time per request (c_IO), by how many are in flight", title_justify="left")
    for heading in ("Request", "in sequence", *(f"{count} at random" for count in counts), "most bytes a second"):
        table.add_column(heading, justify="right", no_wrap=True)
    for size in sorted({request.size_bytes for request in measured}):
        of_size = [request for request in measured if request.size_bytes == size]
        times = {(request.in_flight, request.sequential): 1 / request.requests_per_second for request in of_size}
        cells = [times.get(kind) for kind in ((1, True), *((count, False) for count in counts))]
        fastest = max(request.bytes_per_second for request in of_size)
        shown = ["" if seconds is None else in_units(seconds, plain=plain) for seconds in cells]
        table.add_row(f"{size / 1024:,.0f} KiB", *shown, f"{fastest / 1e6:,.0f} MB")
    return table


def _constants(profile: CostProfile, *, plain: bool) -> Table:
    table = plain_table(title=escape(f"Profile {profile.name}"), title_justify="left")
    table.add_column("Constant", style="cyan")
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("What it is")
    table.add_row("seek", in_units(profile.seek_seconds, plain=plain), "latency of a request at a random place")
    table.add_row("request", in_units(profile.request_seconds, plain=plain), "latency of one that continues the last")
    table.add_row("bandwidth", f"{profile.bytes_per_second / 1e6:,.0f} MB/s", "what the bytes of a request take")
    table.add_row("in flight", str(profile.max_in_flight), "requests at one time, as far as more bring more")
    for symbol, name, meaning in _CONSTANTS:
        table.add_row(symbol, in_units(getattr(profile, name), plain=plain), meaning)
    table.add_row("round", in_units(profile.round_seconds, plain=plain), "what the loop takes around one read")
    return table
