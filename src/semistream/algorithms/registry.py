"""All algorithms by name."""

from __future__ import annotations

from semistream.algorithms.cachejoin import CACHEJOIN, SSCJ
from semistream.algorithms.demandjoin import DEMANDJOIN
from semistream.algorithms.early_lookup import CACHEJOIN_L, HYBRIDJOIN_L
from semistream.algorithms.frequent_pages import CACHEJOIN_PQ, HYBRIDJOIN_PQ
from semistream.algorithms.hybridjoin import HYBRIDJOIN
from semistream.algorithms.inlj import INLJ
from semistream.algorithms.meshjoin import MESHJOIN
from semistream.algorithms.optimised_x_hybridjoin import OPTIMISED_X_HYBRIDJOIN
from semistream.algorithms.oracle import ORACLE
from semistream.algorithms.parallel_cachejoin import OP_CACHEJOIN, P_CACHEJOIN
from semistream.algorithms.partitioned import PARTITIONED
from semistream.algorithms.r_meshjoin import R_MESHJOIN
from semistream.algorithms.ssij import SSIJ
from semistream.algorithms.x_hybridjoin import X_HYBRIDJOIN, X_HYBRIDJOIN_TUNED
from semistream.core.errors import UnknownAlgorithmError
from semistream.engine.recipe import Recipe

ALGORITHMS: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        INLJ,
        MESHJOIN,
        R_MESHJOIN,
        PARTITIONED,
        SSIJ,
        HYBRIDJOIN,
        X_HYBRIDJOIN,
        X_HYBRIDJOIN_TUNED,
        OPTIMISED_X_HYBRIDJOIN,
        CACHEJOIN,
        SSCJ,
        HYBRIDJOIN_L,
        CACHEJOIN_L,
        HYBRIDJOIN_PQ,
        CACHEJOIN_PQ,
        P_CACHEJOIN,
        OP_CACHEJOIN,
        DEMANDJOIN,
        ORACLE,
    )
}

DEFAULT_ALGORITHM = DEMANDJOIN.name


def algorithm_named(name: str) -> Recipe:
    """Return the recipe called `name`."""
    try:
        return ALGORITHMS[name]
    except (KeyError, TypeError):
        raise UnknownAlgorithmError(f"There is no algorithm {name!r}: choose one of {', '.join(ALGORITHMS)}.") from None
