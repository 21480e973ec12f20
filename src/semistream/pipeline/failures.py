"""Turns what Spark says about a failure into one sentence for the user."""

from __future__ import annotations

import re

from semistream.core import errors
from semistream.core.errors import InvalidSettingError, SemistreamError
from semistream.pipeline.java_failures import missing_connector

_OWN_ERROR = re.compile(r"semistream\.[\w.]+\.(\w+Error): ([^\n]+)")
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w+|\n|$)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]{2,})\] ")
_END = re.compile(r" SQLSTATE: \w+|\n|$")
_PYTHON_ERROR = re.compile(r"^([A-Za-z_][\w.]*): ([^\n]*)$", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last)"
_PLAN = "=== Streaming Query ==="
_WRAPPERS = {"STREAM_FAILED", "FAILED_EXECUTE_UDF", "TASK_WRITE_FAILED"}
_QUOTED = re.compile(r"'[^'\n]*'")
_MAX_CHARACTERS = 400
_EXPIRED = re.compile(r"KAFKA_DATA_LOSS|OffsetOutOfRangeException|failOnDataLoss")


class PipelineFailedError(SemistreamError):
    """A running query has stopped with an error."""


class PoisonRecordError(PipelineFailedError):
    """A record of the stream could not be read, and the pipeline stops at such records."""


class ExpiredOffsetsError(PipelineFailedError):
    """Messages of the stream are gone that the pipeline has not read."""


class CheckpointMismatchError(InvalidSettingError):
    """A checkpoint meets a source, a master table or a sink that it does not belong to."""


def made_anew(name: str, where: str) -> ExpiredOffsetsError:
    """Return the error about a topic whose positions mean other messages than the checkpoint has read."""
    return ExpiredOffsetsError(
        f"The topic {name} was removed and made anew since the checkpoint has read it, so that its first messages "
        f"would be left out: start afresh with another checkpoint and another path in [sink], or set expired = "
        f"'skip' in {where} to go on after the old positions."
    )


def first_sentence(error: BaseException) -> str:
    """Return what Spark says in its innermost message, without values of the data."""
    text = str(error).split(_PLAN)[0]
    # Messages stand one in another, so that each goes from its condition to the end of the line.
    errors = [
        (match[1], text[match.end() : _END.search(text, match.end()).start()])  # type: ignore[union-attr]
        for match in _CONDITION.finditer(text)
        if match[1] not in _WRAPPERS
    ]
    if _TRACEBACK in text and (not errors or errors[-1][0] == "PYTHON_EXCEPTION"):
        errors = _PYTHON_ERROR.findall(text) or errors
    kind, said = errors[-1] if errors else (type(error).__name__, text.strip().split("\n", 1)[0])
    shown = " ".join(_QUOTED.sub("'…'", said).split())[:_MAX_CHARACTERS].rstrip(".")
    return f"{shown} [{kind}]" if shown else kind


def as_own_error(error: BaseException) -> SemistreamError:
    """Return the error of semistream that a worker or expression raised, or one that tells what Spark says."""
    if isinstance(error, SemistreamError):
        return error
    text = str(error)
    own = _OWN_ERROR.findall(text)
    if own:
        name, sentence = own[-1]
        kind = getattr(errors, name, PipelineFailedError)
        return kind(sentence) if issubclass(kind, SemistreamError) else PipelineFailedError(sentence)
    missing = missing_connector(text)
    if missing is not None:
        return missing
    if _EXPIRED.search(text):
        return ExpiredOffsetsError(
            "Messages are gone from Kafka that the pipeline has not read, or a topic was made anew: set expired = "
            "'skip' in [source] to go on with the messages that are left, or start afresh with another checkpoint and "
            "another path in [sink]."
        )
    raised = _RAISED.findall(text)
    if raised:
        return PoisonRecordError(raised[-1].strip())
    return PipelineFailedError(
        f"The query has stopped: {first_sentence(error).rstrip('.')}; fix it and start again to continue from the "
        f"last finished batch."
    )
