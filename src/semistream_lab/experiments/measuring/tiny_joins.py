"""Compares rules that choose pages with the fewest reads there are, on many tiny joins."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from semistream.core.errors import InvalidSettingError
from semistream.generator import ZipfKeys
from semistream_lab.experiments.point import Point, Row, Scalar
from semistream_lab.tiny_joins.fewest_reads import fewest_reads, kept_by_min
from semistream_lab.tiny_joins.playing import keep_most_asked, keep_none, reads_by
from semistream_lab.tiny_joins.rules import new_rules
from semistream_lab.tiny_joins.tiny_join import TinyJoin


class _Sizes(NamedTuple):
    keys: int
    rows_per_page: int
    slots: int
    cached: int
    tuples: int


_JOINS = 40
_SIZES = {"pages": _Sizes(6, 1, 5, 0, 50), "cache": _Sizes(6, 2, 4, 1, 40)}


def run(point: Point) -> Row:
    """Return the mean reads of many joins of the sizes that the option `join` names."""
    name = str(dict(point.options).get("join", "pages"))
    if name not in _SIZES:
        raise InvalidSettingError(f"There is no tiny join {name!r}: choose from {', '.join(_SIZES)}.")
    keys, rows, slots, cached, tuples = _SIZES[name]
    reads: dict[str, list[int]] = {}
    for seed in range(_JOINS):
        drawn = ZipfKeys(keys, point.exponent, seed=point.seed + seed, ranks="shuffled").draw(tuples) - 1
        join = TinyJoin(tuple(drawn.tolist()), slots, rows, cached)
        counted = {"fewest": fewest_reads(join)}
        if cached:
            counted["fewest_by_min"] = fewest_reads(join, cache_by_min=True)
            counted["fewest_without_cache"] = fewest_reads(replace(join, cached=0))
        for rule_name, (rule, learner) in new_rules().items():
            keep = keep_most_asked if cached else keep_none
            counted[rule_name] = reads_by(join, rule, keep, learner)
        if cached:
            rule, learner = new_rules()["demandjoin"]
            counted["demandjoin_by_min"] = reads_by(join, rule, kept_by_min, learner)
        for who, count in counted.items():
            reads.setdefault(who, []).append(count)
    row: dict[str, Scalar] = {who: float(np.mean(counts)) for who, counts in reads.items()}
    return {**row, "joins": _JOINS, "tuples": tuples}
