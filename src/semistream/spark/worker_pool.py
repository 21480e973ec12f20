"""Python workers that run joins and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VARIABLE = "SEMISTREAM_WORKERS"
_environment_lock = Lock()


@contextmanager
def workers_of_joins(session: SparkSession) -> Iterator[None]:
    """Let the Python functions that are planned in this context run in workers that run no others.

    Spark gives an idle worker to whichever Python function asks first. The workers of a Python source or function in
    the same stage would take turns with those of the join: each would have a cache that sees only some of the rows, and
    each would take the memory of a join. Functions with other environment variables have other workers. Spark Connect
    does not let us set any.
    """
    context = getattr(session, "_sc", None)
    if context is None:
        yield
        return
    with _environment_lock:
        before = context.environment
        context.environment = {**before, _VARIABLE: "joins"}
        try:
            yield
        finally:
            context.environment = before
