"""The job of the brokers' benchmark: its figures, and who must be told, by a slow loop."""

from __future__ import annotations

import numpy as np
import pytest

from driftline.bench.broker_job import (
    CONNECTIONS,
    PRICES,
    SUBSCRIPTIONS,
    Events,
    Job,
    Subscriptions,
    fan_out_job,
    matches_of,
    mixed,
    stock_job,
    truth_of,
)
from driftline.bench.nats import Nats


@pytest.fixture(scope="module")
def job() -> Job:
    return stock_job(20_000)


def test_the_same_seed_draws_the_same_job(job):
    again, other = stock_job(20_000), stock_job(20_000, seed=1)
    assert np.array_equal(job.events.price, again.events.price)
    assert not np.array_equal(job.subscriptions.low, other.subscriptions.low)


def test_about_one_connection_wants_an_event(job):
    assert 0.9 < truth_of(job).useful_until[-1] / len(job.events) < 1.2


def test_subjects_deliver_what_the_job_was_made_for(job):
    assert 32 < Nats().load(job).messages / len(job.events) < 42
    assert 1.25 < Nats(bucketed=True).load(job).messages / len(job.events) < 1.65


def test_subscriptions_are_narrow_and_within_the_prices(job):
    wanted = job.subscriptions
    assert len(wanted.low) == CONNECTIONS * SUBSCRIPTIONS
    assert wanted.low.min() >= 0
    assert wanted.high.max() < PRICES
    assert (wanted.high - wanted.low).max() < 320


def _looped(job: Job) -> set[tuple[int, int]]:
    events, wanted = job.events, job.subscriptions
    return {
        (number, one)
        for number in range(len(events))
        for one in np.flatnonzero(wanted.symbol == events.symbol[number]).tolist()
        if wanted.low[one] <= events.price[number] <= wanted.high[one]
    }


def _dense(seed: int) -> Job:
    """Few symbols and prices, so that ranges meet at their ends and overlap."""
    draw = np.random.default_rng(seed)
    low = draw.integers(0, 20, 60)
    subscriptions = Subscriptions(
        np.sort(draw.integers(0, 5, 60)),
        draw.integers(0, 3, 60),
        low,
        low + draw.integers(0, 6, 60),
    )
    drawn = [draw.integers(0, top, 200) for top in (3, 30, 9)]
    return Job(5, subscriptions, Events(*drawn))


@pytest.mark.parametrize("seed", range(5))
def test_who_must_be_told_is_what_a_loop_finds(seed):
    job = _dense(seed)
    pairs = _looped(job)
    number, subscription = matches_of(job)
    assert len(number) == len(pairs) > 100
    assert set(zip(number.tolist(), subscription.tolist(), strict=True)) == pairs
    truth = truth_of(job)
    connection = job.subscriptions.connection
    told = {(number, int(connection[one])) for number, one in pairs}
    for at in range(job.connections):
        mine = [(number, one) for number, one in pairs if connection[one] == at]
        assert truth.useful[at] == sum(who == at for _, who in told)
        assert truth.matches[at] == len(mine)
        assert int(truth.sums[at]) == sum(_mixed(*pair) for pair in mine) % 2**64
    for number in range(len(job.events)):
        assert truth.useful_until[number] == sum(one <= number for one, _ in told)


def _mixed(number: int, subscription: int) -> int:
    return int(mixed(np.array([number]), np.array([subscription]))[0])


def test_the_slow_loop_finds_the_stock_job_too():
    job = stock_job(400)
    assert len(matches_of(job)[0]) == len(_looped(job))


def test_sums_of_different_sets_differ():
    number, subscription = np.meshgrid(np.arange(500), np.arange(500))
    assert len(np.unique(mixed(number.ravel(), subscription.ravel()))) == 250_000


def test_in_the_fan_out_everybody_wants_everything():
    truth = truth_of(fan_out_job(50, connections=4))
    assert truth.useful.tolist() == [50] * 4
