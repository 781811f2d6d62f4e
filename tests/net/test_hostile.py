"""Does a broker in the open bear connections that mean it harm? See `hostile`."""

from __future__ import annotations

from tests.net.hostile import bear


def test_hostile_connections(tmp_path):
    borne, _ = bear(tmp_path, 128, 7)
    assert len(borne.tried) == 32
    assert borne.tried.total() == 128
    # Somebody honest was served all the while, and told everything.
    assert all(one["count"] > 20 for one in borne.honest.values())
    # What remains are the durable subscriptions that were asked for, and the clients that requests
    # over HTTP share, of two who have asked.
    left = borne.left
    assert left["connections"] <= 2
    assert (left["http"], left["attached"], left["awaited"], left["behind"]) == (0, 0, 0, 0)
    assert left["subscriptions"] <= 5
    assert borne.rss_after < borne.rss_before + (300 << 20)
