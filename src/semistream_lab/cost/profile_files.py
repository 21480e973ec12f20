"""Cost profiles in files: written by a calibration, found by their path or by a shipped name."""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from semistream.core.costs import PROFILES, CostProfile
from semistream.core.errors import CorruptTableError, InvalidSettingError
from semistream_lab.cost.machine import Machine
from semistream_lab.cost.request_times import RequestTime

FORMAT = "semistream cost profile"
FORMAT_VERSION = 1
_MAX_BYTES = 1 << 20
_NAMES = {field.name for field in fields(CostProfile)} - {"shares_bandwidth"}
"""The constants that files have; what is measured of requests in flight is the bandwidth that they share."""
_REAL_TIME_ONLY = {"round_seconds", "answer_seconds", "row_seconds"}
"""Constants that older files do not have."""
_IN_FILES = {"max_in_flight": "most_in_flight"}
"""Constants that have another name in files."""
_NUMBERS = tuple(sorted(_NAMES - {"name", "max_in_flight"}))


@dataclass(frozen=True)
class Evidence:
    """Where the constants of a profile come from."""

    machine: Machine
    measured_at: str
    """Date and time, UTC."""
    direct: bool
    """Whether reads went past the page cache of the operating system."""
    requests: tuple[RequestTime, ...]


def save_profile(profile: CostProfile, path: str | os.PathLike[str], evidence: Evidence | None = None) -> None:
    """Write a profile as JSON, with its evidence if there is some; a reader sees the old file or the whole new one."""
    path = Path(path)
    content: dict[str, Any] = {"format": FORMAT, "version": FORMAT_VERSION, "profile": _content(profile)}
    if evidence is not None:
        requests = [{**asdict(request), "seconds": request.seconds} for request in evidence.requests]
        content |= {**asdict(evidence), "requests": requests}
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(json.dumps(content, indent=2) + "\n")
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        why = (error.strerror or str(error)).lower()
        raise InvalidSettingError(
            f"The profile {path} cannot be written ({why}): name a file in a writable folder."
        ) from None


def load_profile(path: str | os.PathLike[str]) -> CostProfile:
    """Return the profile in a file; anything else in the file is an error that says what to do."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MAX_BYTES))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InvalidSettingError(
            f"The profile {path} cannot be read ({why}): give a file that `semistream lab calibrate` wrote."
        ) from None
    except (ValueError, RecursionError):
        raise _foreign(path) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _foreign(path)
    if content.get("version") != FORMAT_VERSION:
        raise CorruptTableError(
            f"The profile {path} has the format version {content.get('version')!r}, but this version of semistream "
            f"reads {FORMAT_VERSION}: calibrate again."
        )
    return _profile(path, content.get("profile"))


def find_profile(name_or_path: str) -> CostProfile:
    """Return the shipped profile of this name, or the one in the file at this path."""
    if name_or_path in PROFILES:
        return PROFILES[name_or_path]
    if Path(name_or_path).exists() or Path(name_or_path).name != name_or_path or name_or_path.endswith(".json"):
        return load_profile(name_or_path)
    known = ", ".join(sorted(PROFILES))
    raise InvalidSettingError(
        f"There is no cost profile {name_or_path!r}: choose one of {known}, or give a file that "
        "`semistream lab calibrate` wrote."
    )


def _content(profile: CostProfile) -> dict[str, Any]:
    return {_IN_FILES.get(name, name): value for name, value in asdict(profile).items() if name in _NAMES}


def _profile(path: Path, content: Any) -> CostProfile:
    written = {_IN_FILES.get(name, name): name for name in _NAMES}
    if not isinstance(content, dict) or not set(content) <= set(written):
        raise _damaged(path)
    values = {written[name]: value for name, value in content.items()}
    if not set(values) >= _NAMES - _REAL_TIME_ONLY:
        raise _damaged(path)
    in_flight = values["max_in_flight"]
    sound = (
        isinstance(values["name"], str)
        and isinstance(in_flight, int)
        and not isinstance(in_flight, bool)
        and in_flight >= 1
        and all(_is_cost(values[name]) for name in _NUMBERS if name in values and not _is_unknown(name, values[name]))
        and values["bytes_per_second"] > 0
    )
    if not sound:
        raise _damaged(path)
    return CostProfile(**values)


def _is_unknown(name: str, value: Any) -> bool:
    return name == "row_seconds" and value is None


def _is_cost(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _foreign(path: Path) -> CorruptTableError:
    return CorruptTableError(f"{path} is not a cost profile: give a file that `semistream lab calibrate` wrote.")


def _damaged(path: Path) -> CorruptTableError:
    return CorruptTableError(f"The cost profile {path} is damaged: calibrate again.")
