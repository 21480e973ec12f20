"""How each claim of the papers is judged, a file for each paper; importing this package registers them all."""

from semistream_lab.experiments.claims import (  # noqa: F401
    frequent_pages,
    generated_stream,
    hybridjoin,
    hybridjoin_reads,
    hybridjoin_theorems,
    look_up_positions,
    optimised_x_hybridjoin,
    page_reads,
    parallel_cachejoin,
    parallel_parts,
    x_hybridjoin,
    x_tuning,
)
