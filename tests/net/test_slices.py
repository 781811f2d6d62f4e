"""Do events that take long wait for their turn, and are they all told, in order?"""

from __future__ import annotations

import asyncio

import pytest

import driftline as dl
from driftline.broker.requests import PublishMany, Request
from driftline.model.event import Event
from driftline.net.slices import LEAST, MOST, QUICK, ROOM, SECONDS, Batch, Slices
from driftline.wire.compact import write_record
from driftline.wire.forms import form_of
from tests.net.here import address, served


def test_batches_are_cut_where_events_end_and_say_so_at_the_last() -> None:
    """A batch in parts: the same records, the same numbers, one request."""
    events = [Event("q", {"n": n, "text": "x" * (n % 7)}) for n in range(50)]
    records = b"".join(write_record(one, 0, form_of(one)) for one in events)
    rest: Batch | None = Batch(7, 50, 100, records).kept()
    parts: list[Batch] = []
    while rest is not None:
        part, rest = rest.cut(16)
        parts.append(part)
    assert b"".join(one.records for one in parts) == records
    assert [(one.events, one.number) for one in parts] == [
        (16, 100),
        (16, 116),
        (16, 132),
        (2, 148),
    ]
    assert [one.is_last for one in parts] == [False, False, False, True]
    assert {one.request for one in parts} == {0}
    assert {id(one.whole) for one in parts} == {id(parts[0].whole)}
    assert parts[0].whole is not None
    assert parts[0].whole.request == 7
    # What cannot be cut is refused as a whole, by who reads it.
    broken = Batch(7, 50, 0, records[:100])
    assert broken.cut(16) == (broken, None)


def test_slices_grow_while_it_is_quick_and_shrink_when_it_is_not() -> None:
    slices = Slices()
    for _ in range(20):
        slices.took(slices.most, 0.0001)
    assert slices.most == MOST
    slices.took(5000, 0.5)
    assert LEAST <= slices.most <= 5000 * SECONDS / 0.5 + 1
    assert not slices.fits(5000)


def test_who_is_new_begins_with_one_and_what_is_quick_is_not_cut() -> None:
    slices = Slices()
    assert slices.most == LEAST
    assert not slices.fits(LEAST + 1)
    slices.took(LEAST, 10 * SECONDS)
    assert slices.most == LEAST
    while not slices.is_quick:
        assert not slices.fits(slices.most + 1)
        slices.took(slices.most, SECONDS / 100)
    assert slices.most == QUICK
    assert slices.fits(ROOM * slices.most)
    # Who publishes one at a time is as quick as others.
    slices.took(1, SECONDS / 100)
    assert slices.most == QUICK


@pytest.mark.parametrize("once", [False, True])
def test_a_flood_that_takes_long_is_answered_whole_and_in_order(
    once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut as small as can be: each is told, in order, and what is refused has its place."""

    async def test() -> None:
        async with (
            served() as server,
            dl.connect(address(server)) as client,
            client.subscribe("SELECT n FROM q") as s,
        ):
            await client.declare("t", "k")
            events = [dl.Event("q", {"n": n}, id=f"{n}", source="here") for n in range(3000)]
            # Rows without their key are refused.
            events[1000] = events[2000] = dl.Event("t", {"n": 1}, id="t", source="here")
            (guest,) = server.guests.values()
            guest.incoming._slices.most = LEAST
            monkeypatch.setattr(Slices, "took", lambda self, events, seconds: None)
            asked: list[int] = []
            ask = server.driver.ask

            def counted(party: str, one: Request) -> None:
                if isinstance(one, PublishMany):
                    asked.append(len(one.records))
                    assert one.once == once
                ask(party, one)

            server.driver.ask = counted  # type: ignore[method-assign]
            found = await client.publish_each(events, once=once)
            # None of it in one piece, though nobody else waits.
            assert len(asked) == 3000 // LEAST
            refused = [at for at, one in enumerate(found) if one is not None]
            assert refused == [1000, 2000]
            told = [(await s.next(5)).values["n"] for _ in range(2998)]
            assert told == [n for n in range(3000) if n not in refused]

    asyncio.run(asyncio.wait_for(test(), 30))
