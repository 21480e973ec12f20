"""The command that shows the whole thing on generated sales."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    seconds: Annotated[
        float, typer.Option(metavar="S", help="How long sales stream after the first micro-batch.")
    ] = 40,
    products: Annotated[int, typer.Option(metavar="N", help="Rows of the product master.")] = 8_000_000,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="The memory of the joins of a worker.")] = "32MB",
    rate: Annotated[int, typer.Option(metavar="N", help="Sales a second, on average.")] = 20_000,
    algorithm: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="See `semistream algorithms`.", show_default="the default of enrich"),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where everything is written; only an earlier demo's folder is replaced."),
    ] = Path("semistream-demo"),
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the summary, as a list of flat objects.")
    ] = None,
) -> None:
    """Enrich generated sales on Spark, and prove the result.

    Takes about a minute and a half, and writes a page about what it did. Builds a product master far larger than the
    memory, streams bursts of sales through `enrich` into a Parquet warehouse, compares every row with Spark's own
    join, and ends with code 1 if they differ. Needs Java 17 or later.
    """
    from semistream.cli import demo_rendering, interruption, json_output, run_rendering, run_screen
    from semistream.cli.progress import progress
    from semistream.demo import DemoFolder, DemoSettings, DemoSummary, prepare, prove, stream_sales, warm_up
    from semistream.demo.demo_page import page
    from semistream.master_table import MasterTable
    from semistream.pipeline.running import session_of
    from semistream.spark.spark_session import check_java

    chosen = {} if algorithm is None else {"algorithm": algorithm}
    settings = DemoSettings(products=products, seconds=seconds, memory=memory, rate=rate, **chosen)
    check_java()
    with DemoFolder.claimed(out) as folder:
        if json_file is not None:
            json_output.check_writable(json_file)
        folder.clear()
        demo_rendering.show_promise(settings)
        demo_rendering.show_preparing(settings)
        with progress() as reporting:
            description = prepare(folder, settings, reporting.update)
        master_bytes = MasterTable(folder.master).info()["bytes"]
        demo_rendering.show_size(master_bytes, settings)
        run_rendering.show_starting(description)
        with interruption.silent_log(), session_of(description) as spark:
            interruption.install()  # Spark has put a handler of its own for Ctrl-C
            demo_rendering.show_warming()
            warm_up(spark, description)
            demo_rendering.show_streaming(settings)
            with run_screen.screen(description) as screen:
                batches = stream_sales(spark, description, settings.seconds, screen.show)
            demo_rendering.show_proving()
            proof = prove(spark, description, folder.products)
        summary = DemoSummary.of(settings, master_bytes, batches)
        folder.page.write_text(page(summary, proof, batches), encoding="utf-8")
    if json_file is not None:
        json_output.write_json(json_file, [summary.row(proof)])
    demo_rendering.show_demo(summary, proof, folder)
    if not proof.holds:
        raise typer.Exit(1)
