"""Is a message taken by the first filter that fits, and once?"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import topic_matches_sub

from driftline.bridge.filters import Filters

levels = st.lists(st.sampled_from(["a", "b", "", "$x"]), min_size=1, max_size=4)
topics = levels.map("/".join)
filters = st.builds(
    lambda wanted, rest: "/".join([*wanted, *rest]),
    st.lists(st.sampled_from(["a", "b", "", "+", "$x"]), min_size=1, max_size=4),
    st.sampled_from([[], ["#"]]),
)
several = st.lists(st.one_of(filters, st.just("#")), min_size=1, max_size=6, unique=True)


@given(several, topics)
def test_the_first_that_fits_is_the_one_that_the_library_would_find(wanted, topic):
    fits = [place for place, one in enumerate(wanted) if topic_matches_sub(one, topic)]
    assert Filters(wanted).first(topic) == (fits[0] if fits else None)


@given(several, topics, st.data())
def test_it_is_taken_once_however_the_broker_sends_it(wanted, topic, data):
    """One copy for each subscription, one for all, or anything between."""
    found = Filters(wanted)
    fits = [place for place, one in enumerate(wanted) if topic_matches_sub(one, topic)]
    packets: dict[int, list[int]] = {}
    for place in fits:
        packets.setdefault(data.draw(st.integers(0, 3)), []).append(found.numbers[place])
    first: Any = found.first(topic)
    taken = [one for one in packets.values() if not found.is_copy(first, one)]
    assert len(taken) == min(1, len(fits))


@given(several, several)
def test_what_was_subscribed_to_with_others_is_never_a_copy(wanted, before):
    """It may have waited since there was no first one."""
    if wanted == before:
        return
    found = Filters(wanted)
    for number in Filters(before).numbers:
        assert not any(found.is_copy(place, [number]) for place in range(len(wanted)))


def test_what_names_no_subscription_is_taken():
    assert not Filters(["#", "a"]).is_copy(0, [])


@given(several, topics)
def test_whatever_else_may_have_been_subscribed_to_is_among_the_others(wanted, topic):
    others = Filters(wanted).others(topic)
    assert len(set(others)) == len(others)
    assert not set(others) & set(wanted)
    assert all(topic_matches_sub(one, topic) for one in others)


@given(several, filters, topics)
def test_every_filter_that_fits_is_ours_or_another(wanted, before, topic):
    if topic_matches_sub(before, topic):
        assert before in wanted or before in Filters(wanted).others(topic)


def test_of_a_very_deep_topic_there_are_too_many_others():
    assert len(Filters([]).others("a/" * 7)) == 767
    assert not Filters([]).others("a/" * 8)
