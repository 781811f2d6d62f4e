"""A policy is checked before anything relies on it, and an error says what was wanted."""

import pickle

import pytest

from driftline.broker.policy import Overflow, Policy
from driftline.errors import InvalidValue


def test_the_default_drops_the_oldest_and_has_no_intervals():
    policy = Policy()
    assert policy.overflow == "drop_oldest"
    assert policy.plain


@pytest.mark.parametrize("name", ["min_interval_us", "max_interval_us"])
def test_a_policy_with_an_interval_is_not_plain(name):
    assert not Policy(**{name: 1}).plain


@pytest.mark.parametrize(
    ("options", "where", "wanted"),
    [
        ({"overflow": "drop_newest"}, "policy.overflow", "'drop_oldest' or 'conflate' or 'block'"),
        ({"overflow": "BLOCK"}, "policy.overflow", "'block'"),
        ({"overflow": None}, "policy.overflow", "'block'"),
        ({"overflow": ["block"]}, "policy.overflow", "'block'"),
        ({"limit": 0}, "policy.limit", "an integer from 1"),
        ({"limit": -1}, "policy.limit", "an integer from 1"),
        ({"limit": float("nan")}, "policy.limit", "an integer from 1"),
        ({"limit": 10.0}, "policy.limit", "an integer from 1"),
        ({"limit": True}, "policy.limit", "an integer from 1"),
        ({"limit": "10"}, "policy.limit", "an integer from 1"),
        ({"limit": 1 << 41}, "policy.limit", "to 1099511627776"),
        ({"limit_bytes": 0}, "policy.limit_bytes", "an integer from 1"),
        ({"min_interval_us": -1}, "policy.min_interval_us", "an integer from 0"),
        ({"max_interval_us": 0.5}, "policy.max_interval_us", "an integer from 0"),
        ({"max_interval_us": 10**16}, "policy.max_interval_us", "to 1000000000000000"),
        ({"min_interval": float("nan")}, "policy.min_interval", "seconds"),
        ({"min_interval": float("inf")}, "policy.min_interval", "seconds"),
        ({"min_interval": -1}, "policy.min_interval", "seconds"),
        ({"min_interval": 1e-9}, "policy.min_interval", "0, or seconds from a millionth"),
        ({"max_interval": "1"}, "policy.max_interval", "seconds"),
        ({"max_interval": True}, "policy.max_interval", "seconds"),
        ({"min_interval": 2, "max_interval": 1}, "policy.max_interval_us", "at least"),
        ({"min_interval": 1, "min_interval_us": 1}, "policy.min_interval_us", "seconds or micro"),
        ({"min_interval_us": 1, "min_interval": 1}, "policy.min_interval_us", "seconds or micro"),
        ({"key": "symbol"}, "policy.key", "none unless overflow is 'conflate'"),
        ({"overflow": "conflate", "key": ""}, "policy.key", "the name of an attribute"),
        ({"overflow": "conflate", "key": 7}, "policy.key", "the name of an attribute"),
        ({"limits": 10}, "policy", "only overflow, limit, limit_bytes, key"),
        ({7: 10}, "policy", "only overflow"),
        ([("limit", 10)], "policy", "names and values"),
        (None, "policy", "names and values"),
    ],
)
def test_bad_options_are_refused(options, where, wanted):
    with pytest.raises(InvalidValue) as caught:
        Policy.of_options(options)
    assert caught.value.where == where
    assert wanted in caught.value.wanted


def test_a_longest_interval_may_equal_the_shortest():
    policy = Policy.of_options({"min_interval": 1, "max_interval": 1})
    assert (policy.min_interval_us, policy.max_interval_us) == (1_000_000, 1_000_000)


def test_a_longest_interval_of_none_is_not_below_the_shortest():
    assert Policy.of_options({"min_interval": 1, "max_interval": 0}).max_interval_us == 0


def test_words_become_members():
    assert Policy(overflow="block").overflow is Overflow.BLOCK


@pytest.mark.parametrize(
    "policy",
    [
        Policy(),
        Policy(Overflow.BLOCK, 7, 70),
        Policy(Overflow.CONFLATE, key="symbol", min_interval_us=500_000, max_interval_us=10**9),
    ],
)
def test_options_come_back(policy):
    assert Policy.of_options(policy.options()) == policy
    assert all(type(one) in (str, int) for one in policy.options().values())
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_the_default_is_said_by_nothing():
    assert Policy().options() == {}
