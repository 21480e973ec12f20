"""How each claim of the papers is judged, a file for each paper; importing this package registers them all."""

from semistream_lab.experiments.claims import (  # noqa: F401
    frequent_pages_paper,
    frequent_pages_reads,
    generated_stream,
    hybridjoin_paper,
    hybridjoin_reads,
    hybridjoin_theorems,
    look_up_positions,
    optimised_x_hybridjoin_paper,
    parallel_cachejoin_paper,
    parallel_parts,
    x_hybridjoin_paper,
    x_tuning,
)
