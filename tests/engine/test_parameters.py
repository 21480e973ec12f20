"""The kinds of parameters and what they accept."""

from __future__ import annotations

import math

import numpy as np
import pytest

from semistream.core.errors import InvalidSettingError
from semistream.engine.parameters import Extent, Flag, Number, Parameter, Tuning, Values, Whole, named

SHARE = Number("share", 0.3, low=0.001, high=1, about="a share")
PARTS = Whole("parts", 2400, low=1, high=1e12, about="a number of parts")
AGE = Flag("age", True, about="a switch")


@pytest.mark.parametrize("given", [True, 1, 1.0, np.float64(1)])
def test_a_flag_is_a_bool_whichever_way_yes_is_written(given: float) -> None:
    values = Values("some", named(AGE.with_default(False)), {"age": given})
    assert values[AGE] is True


@pytest.mark.parametrize("given", [False, 0, 0.0])
def test_a_flag_is_a_bool_whichever_way_no_is_written(given: float) -> None:
    assert Values("some", named(AGE), {"age": given})[AGE] is False


@pytest.mark.parametrize("given", [7, 7.0, np.int64(7)])
def test_a_whole_number_is_an_int_whichever_way_it_is_written(given: float) -> None:
    value = Values("some", named(PARTS), {"parts": given})[PARTS]
    assert type(value) is int
    assert value == 7


@pytest.mark.parametrize(
    ("parameter", "wrong", "sentence"),
    [
        (AGE, 0.5, "The parameter 'age' must be true or false, but is 0.5."),
        (AGE, "yes", "The parameter 'age' must be true or false, but is 'yes'."),
        (PARTS, 2.5, "The parameter 'parts' must be a whole number from 1 to 1,000,000,000,000, but is 2.5."),
        (PARTS, 0, "The parameter 'parts' must be a whole number from 1 to 1,000,000,000,000, but is 0."),
        (PARTS, math.inf, "The parameter 'parts' must be a whole number from 1 to 1,000,000,000,000, but is inf."),
        (SHARE, 5, "The parameter 'share' must be from 0.001 to 1, but is 5."),
        (SHARE, True, "The parameter 'share' must be from 0.001 to 1, but is True."),
        (SHARE, math.nan, "The parameter 'share' must be from 0.001 to 1, but is nan."),
        (SHARE, None, "The parameter 'share' must be from 0.001 to 1, but is None."),
    ],
)
def test_what_is_not_of_the_kind_or_beyond_the_limits_is_refused(
    parameter: Parameter[float], wrong: object, sentence: str
) -> None:
    with pytest.raises(InvalidSettingError) as raised:
        parameter.checked(wrong)
    assert str(raised.value) == sentence


def test_a_name_that_the_recipe_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(InvalidSettingError, match="some has no parameter 'colour': its parameters are share, age"):
        Values("some", named(SHARE, AGE), {"colour": 1})


def test_what_is_not_given_has_its_default_and_can_be_told_from_what_is() -> None:
    values = Values("some", named(SHARE, PARTS.with_default(7)), {"share": 0.3})
    assert (values[SHARE], values[PARTS]) == (0.3, 7)
    assert values.is_given(SHARE)
    assert not values.is_given(PARTS)


def test_a_default_obeys_the_limits() -> None:
    with pytest.raises(InvalidSettingError, match="'parts' must be a whole number"):
        PARTS.with_default(0)


def test_bounds_of_tuning_may_grow_with_the_table_and_the_memory() -> None:
    tuning = Tuning(2.0, lambda extent: extent.memory_bytes / extent.page_bytes)
    assert tuning.bounds(Extent(page_bytes=10, table_bytes=1000, memory_bytes=500)) == (2.0, 50.0)
