"""Results as JSON: always a list of flat objects."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

Scalar = str | int | float | bool | None


def as_json(rows: Iterable[Mapping[str, Scalar]]) -> str:
    """Return a list with one flat object a line; numbers that JSON does not know become null."""
    lines = [json.dumps({name: _known_to_json(value) for name, value in row.items()}) for row in rows]
    return "[\n  " + ",\n  ".join(lines) + "\n]\n" if lines else "[]\n"


def _known_to_json(value: Scalar) -> Scalar:
    return None if isinstance(value, float) and not math.isfinite(value) else value
