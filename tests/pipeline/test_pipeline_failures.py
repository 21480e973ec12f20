"""What Spark says about a failure becomes one sentence, without values of the data."""

from __future__ import annotations

import pytest

from semistream.core.errors import InvalidSettingError, SchemaDriftError, SemistreamError
from semistream.pipeline.failures import PipelineFailedError, PoisonRecordError, as_own_error, first_sentence

WORKER = """[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: [PYTHON_EXCEPTION] An exception was \
thrown from the Python worker: Traceback (most recent call last):
  File "task.py", line 1, in __call__
{last}
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
"""


def test_an_error_of_ours_in_a_worker_comes_back_as_itself() -> None:
    last = "semistream.core.errors.SchemaDriftError: The column 'price' is gone: bring it back."
    error = as_own_error(RuntimeError(WORKER.format(last=last)))
    assert type(error) is SchemaDriftError
    assert str(error) == "The column 'price' is gone: bring it back."


def test_any_other_error_in_a_worker_names_its_kind_and_no_values() -> None:
    error = as_own_error(RuntimeError(WORKER.format(last="pyarrow.lib.ArrowInvalid: cannot take 'hunter2' here")))
    assert type(error) is PipelineFailedError
    assert "cannot take '…' here [pyarrow.lib.ArrowInvalid]" in str(error)
    assert "hunter2" not in str(error)


def test_a_worker_of_an_older_spark_is_understood_too() -> None:
    text = WORKER.replace("[PYTHON_EXCEPTION] An exception was thrown from the Python worker", "PythonException")
    error = as_own_error(RuntimeError(text.format(last="KeyError: 'hunter2'\n\n\tat org.apache.spark.X(X.scala:1)")))
    assert "'…' [KeyError]" in str(error)


def test_what_an_expression_raises_is_a_poison_record() -> None:
    text = "[STREAM_FAILED] Query terminated: [USER_RAISED_EXCEPTION] A record of f.json is bad. SQLSTATE: P0001\n=== x"
    error = as_own_error(RuntimeError(text))
    assert type(error) is PoisonRecordError
    assert str(error) == "A record of f.json is bad."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012 (line 1)", "Division by zero [DIVIDE_BY_ZERO]"),
        (
            "[CAST_INVALID_INPUT] The value 'hunter2' of the type \"STRING\" cannot be cast. SQLSTATE: 22018",
            "The value '…' of the type \"STRING\" cannot be cast [CAST_INVALID_INPUT]",
        ),
        ("plain\nsecond line", "plain [RuntimeError]"),
        ("", "RuntimeError"),
    ],
)
def test_the_innermost_condition_of_spark_is_told(text: str, sentence: str) -> None:
    assert first_sentence(RuntimeError(text)) == sentence
    message = str(as_own_error(RuntimeError(text)))
    assert sentence in message
    assert "\n" not in message


def test_an_error_that_is_ours_stays_as_it_is() -> None:
    ours: SemistreamError = InvalidSettingError("Wrong.")
    assert as_own_error(ours) is ours
