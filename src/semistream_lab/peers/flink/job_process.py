"""The process in which Flink runs one query; it has Flink's Python and so imports nothing of semistream.

Takes its order as one line of JSON on standard input, because that may hold a password. Prints one line of JSON: the
number of the job once it runs, or that it has finished, or the kind of error. A job that stays is cancelled as soon as
standard input ends, which it also does when the process that started this one is gone.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def run(order: dict[str, Any], tell: Any) -> None:
    """Make the tables and run the query."""
    from pyflink.common import Configuration  # type: ignore[import-not-found, unused-ignore]
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found, unused-ignore]

    configuration = Configuration()
    for name, value in order["settings"].items():
        configuration.set_string(name, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    tables = TableEnvironment.create(settings)
    for statement in order["statements"]:
        tables.execute_sql(statement)
    running = tables.execute_sql(order["query"])
    job = running.get_job_client()
    if not order["stays"]:
        running.wait()
        tell({"finished": True})
        return
    tell({"job": str(job.get_job_id())})
    sys.stdin.read()
    job.cancel().result()


def main() -> int:
    """Run the order and return the exit code."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not be mixed with the answers

    def tell(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        run(json.loads(sys.stdin.readline()), tell)
    except Exception as error:
        # The words of an error may repeat a statement, and with it the password.
        tell({"failed": type(error).__name__})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
