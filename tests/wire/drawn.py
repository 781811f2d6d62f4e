"""What might brokers say to one another? Strategies for parcels and control messages."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from driftline.model.event import EARLIEST_US, ENVELOPE, LATEST_US, Event
from driftline.model.message import (
    Answer,
    Ask,
    Control,
    Home,
    Interest,
    Neighbours,
    Offer,
    Parcel,
    Sequence,
)
from driftline.model.value import INTEGER_MAX, Value
from driftline.testing.filters import filters, published
from driftline.testing.strategies import advertisements, values

NAMES = st.sampled_from(("", "a", "b17", "it's", "é", "\U0001f600", "a\x00b", "x" * 300))
VERSIONS = st.sampled_from((0, 1, 2**31, 2**63 - 1)) | st.integers(0, INTEGER_MAX)
STAMPS_US = st.none() | st.sampled_from((EARLIEST_US, -1, 0, 1, LATEST_US))

_filters = filters().filter(bool).map(lambda alternatives: alternatives[0])
_steps = st.lists(st.lists(_filters, min_size=1, max_size=2).map(tuple), min_size=2, max_size=3)
_sequences = st.builds(
    Sequence, _steps.map(tuple), st.sampled_from((EARLIEST_US, -1, 0, LATEST_US))
)
_moved = st.dictionaries(st.integers(0, 9), values().filter(lambda one: one == one), max_size=2)
_updates = st.dictionaries(NAMES, _moved, max_size=2)
_some_names = st.lists(NAMES, max_size=4).map(tuple)

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACES = (None, TRACE, f"{TRACE} vendor=7")


@st.composite
def events(draw: DrawFn) -> Event:
    """Any event: those that matching is tested with, and others with names of any kind."""
    if draw(st.booleans()):
        return draw(published())
    names = st.sampled_from(("x", "é", "\x00", "a b", "n" * 300)) | st.text(min_size=1)
    # Hypothesis draws texts that it has found in our sources, these among them.
    names = names.filter(lambda name: name not in ENVELOPE)
    texts = st.none() | st.sampled_from(("7", "é", "\x00")) | st.text(min_size=1)
    return Event(
        draw(st.sampled_from(("quote", "a b", "é"))),
        draw(st.dictionaries(names, values(), max_size=4)),
        time=draw(STAMPS_US),
        id=draw(texts),
        source=draw(texts),
        entered=draw(STAMPS_US),
        trace=draw(st.sampled_from(TRACES)),
    )


@st.composite
def stamps(draw: DrawFn) -> dict[str, Value]:
    """Values of variables, as they were where an event entered."""
    return draw(st.dictionaries(NAMES, values(), max_size=3))


@st.composite
def parcels(draw: DrawFn) -> Parcel:
    """A parcel with some of what it may have."""
    return Parcel(
        draw(NAMES),
        draw(st.sampled_from((0, 1, 2**63, 2**64 - 1)) | st.integers(0, 2**64 - 1)),
        draw(events()),
        draw(NAMES),
        draw(st.integers(0, 255)),
        draw(_some_names),
        draw(stamps()),
    )


@st.composite
def messages(draw: DrawFn) -> Control:
    """A control message of any class."""
    kind = draw(st.sampled_from((Interest, Interest, Offer, Offer, Home, Neighbours, Ask, Answer)))
    if kind is Ask:
        return Ask(draw(NAMES), draw(st.integers(0, 2**63 - 1)), draw(st.none() | advertisements()))
    if kind is Answer:
        return Answer(draw(NAMES), draw(_some_names), draw(st.booleans()))
    if kind is Neighbours:
        return Neighbours(draw(NAMES), draw(VERSIONS), draw(_some_names))
    said = advertisements() if kind is Offer else _filters
    added = draw(st.dictionaries(NAMES, said, max_size=3))
    removed = draw(_some_names)
    if kind is Home:
        offered = draw(st.dictionaries(NAMES, advertisements(), max_size=3))
        versions = draw(VERSIONS), draw(VERSIONS)
        updates = draw(_updates)
        return Home(draw(NAMES), *versions, added, removed, offered, draw(_some_names), updates)
    if kind is Offer:
        return Offer(added, removed, draw(st.booleans()))
    sequences = draw(st.dictionaries(NAMES, _sequences, max_size=2))
    updates = draw(_updates)
    return Interest(added, removed, draw(st.booleans()), sequences, updates)
