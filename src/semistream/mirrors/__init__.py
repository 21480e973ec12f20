"""Mirrors: master tables that are kept in step with a source (docs/mirrors.md).

`source_description.py` says what a source must do, one module beside it is one kind of source, and `refreshing.py`
brings a table in step.
"""
