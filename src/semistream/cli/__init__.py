"""The command line: commands apart from their rendering."""

from semistream.core.extras import require

require("typer", extra="cli", purpose="The command line")
require("rich", extra="cli", purpose="The command line")
