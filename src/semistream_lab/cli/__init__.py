"""The research verbs of the command line: `semistream lab ...`."""
