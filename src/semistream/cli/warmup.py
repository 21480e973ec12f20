"""The command that compiles what joins need, so that the first of them does not wait for it."""

from __future__ import annotations

import logging
import time

import typer


def warmup() -> None:
    """Compile the hot loops of joins in advance.

    They are compiled once per installation. Otherwise the first join pauses for some ten seconds, and the first Python
    worker takes more memory. On a cluster, run this on every node, or while the image is built.
    """
    from semistream.cli.progress import progress
    from semistream.core.compile import compiled_count
    from semistream.joining.compiled_kernels import compile_kernels

    logging.getLogger("semistream").setLevel(logging.ERROR)  # it would advise to do what is being done
    started = time.perf_counter()
    with progress() as reporting:
        compile_kernels(lambda done, total: reporting.update("Compiling kernels", done, total))
    count = compiled_count()
    if count:
        typer.echo(f"Compiled {count} kernels in {time.perf_counter() - started:.1f} s.")
    else:
        typer.echo("Nothing to do: all kernels are compiled already.")
