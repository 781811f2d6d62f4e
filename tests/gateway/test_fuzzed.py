"""Is everything that can be asked over HTTP answered as it is described? See `fuzz`."""

from __future__ import annotations

from tests.gateway.fuzz import fuzz


def test_fuzzed_requests(tmp_path):
    found = fuzz(tmp_path, 400, 7)
    assert found.requests >= 400
    assert found.streams >= 100
    # Some of it was sound: what is refused at once finds nothing.
    assert found.statuses["200"] > 5
    # The client that requests share stays a while.
    assert (found.left["connections"], found.left["subscriptions"], found.left["http"]) == (1, 0, 0)
    assert found.left["attached"] == found.left["policies"] == 0
