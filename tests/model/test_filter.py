"""What a filter is, apart from what it means."""

from __future__ import annotations

import pickle

from driftline.language.sql import parse


def test_a_filter_keeps_no_hash_when_it_is_pickled() -> None:
    """That of a text is another in every process."""
    one = parse("SELECT * FROM quote WHERE firm = 'IBM' AND low < high").filters()[0]
    assert hash(one) == hash(one)
    again = pickle.loads(pickle.dumps(one))
    assert not hasattr(again, "_hash")
    assert again == one
    assert hash(again) == hash(one)
