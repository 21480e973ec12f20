"""The command `semistream`, also as `python -m semistream`."""

from __future__ import annotations

import sys

from semistream.core.errors import MissingExtraError


def main() -> None:
    """Run the command line, or say in one sentence which extra brings it."""
    try:
        from semistream.cli.main import main as run
    except MissingExtraError as error:
        sys.exit(f"Error: {error}")
    run()


if __name__ == "__main__":
    main()
