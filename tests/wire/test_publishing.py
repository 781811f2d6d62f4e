"""Does what tells events apart come back from before a batch, and is anything else refused?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import FrameRefused
from driftline.wire.publishing import apart_head, split_apart


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.binary())
def test_a_name_and_a_batch_come_back(name: str, batch: bytes) -> None:
    assert split_apart(apart_head(name) + batch) == (name, batch)


@pytest.mark.parametrize("wrong", [b"", b"\1", b"\0\0rest", b"\5\0abc", b"\2\0\xff\xferest"])
def test_what_does_not_name_an_attribute_is_refused(wrong: bytes) -> None:
    with pytest.raises(FrameRefused, match="the name of an attribute"):
        split_apart(wrong)
