"""Can nobody ask for what the system tells itself?"""

from __future__ import annotations

import pytest

import driftline as dl
from driftline.broker.stating import check_executable
from driftline.errors import NotSupported

OF_THE_SYSTEM = [
    'SELECT * FROM "$rows:tab"',
    'SELECT * FROM tab THEN SELECT * FROM "$rows:tab"',
    'SELECT * FROM "$delete:tab" WHERE moved(KEY, by => 1)',
    'SELECT DISTINCT KEY FROM "$delete:tab"',
    'SELECT DISTINCT KEY FROM "$delete:tab" WHERE KEY BETWEEN 1 AND 9',
    'SELECT MIN(KEY) FROM "$delete:tab" WHERE KEY BETWEEN 1 AND 9',
    'SELECT a.k, b.KEY AS z FROM tab a JOIN "$delete:tab" b ON a.k = b.KEY',
    'SELECT a.KEY AS z, b.k FROM "$delete:tab" a JOIN tab b ON a.KEY = b.k',
]


@pytest.mark.parametrize("text", OF_THE_SYSTEM)
def test_types_of_the_system_are_refused_wherever_they_are_named(text):
    with pytest.raises(NotSupported, match="the system's own"):
        check_executable(dl.parse(text), {})


@pytest.mark.parametrize("text", OF_THE_SYSTEM)
def test_the_same_of_any_other_type_is_not(text):
    check_executable(dl.parse(text.replace("$", "")), {})
