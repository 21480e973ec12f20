"""Every error that semistream raises on purpose: one sentence that says what to do."""

from __future__ import annotations


class SemistreamError(Exception):
    """The base of all errors of semistream; the message is one sentence for the user."""


class BudgetTooSmallError(SemistreamError):
    """The memory budget is below the minimum that the join needs."""

    def __init__(self, message: str, needed_bytes: float = 0.0) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes
        """About what would be enough, where it is known."""


class BudgetExceededError(SemistreamError):
    """A component asked for more bytes than its budget has left."""


class KeyTypeError(SemistreamError):
    """Key columns cannot be compared without losing information, or cannot be keys at all."""


class UnknownColumnError(SemistreamError):
    """A column was named that the data does not have."""


class NameClashError(SemistreamError):
    """Two output columns would have the same name."""


class NullKeyError(SemistreamError):
    """Master rows have a null in their key."""


class DuplicateKeyError(SemistreamError):
    """Master rows share a key although the key must be unique."""


class MasterNotFoundError(SemistreamError):
    """There is no master table at the given place."""


class CorruptTableError(SemistreamError):
    """A file of a master table is damaged, truncated or of another format."""


class SchemaDriftError(SemistreamError):
    """The schema of the data is not the schema that the work was started with."""


class ConcurrentWriteError(SemistreamError):
    """Another writer committed to the same master table first."""


class StoreUnavailableError(SemistreamError):
    """A store did not answer, or not in time: what was asked of it may have been done or not."""


class RowTooLargeError(SemistreamError):
    """A single row needs more memory than the budget can give to one row."""


class UnknownAlgorithmError(SemistreamError):
    """An algorithm was named that is not in the registry."""


class MissingExtraError(SemistreamError, ImportError):
    """A package is not installed that only an extra of semistream brings."""


class InvalidSettingError(SemistreamError):
    """An argument or setting has a value that makes no sense."""


class MasterUnavailableError(SemistreamError):
    """The place of a master table, as a database server, does not answer or refuses to."""


class SinkUnavailableError(SemistreamError):
    """The server that rows are written to does not answer or refuses to."""


class UnsupportedValueError(SemistreamError):
    """A value of a database has no counterpart in Arrow, or a value of a row has none in the database."""
