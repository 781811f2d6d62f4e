"""What follows from a bundle of events that came by a link?

The same as from each of them by itself (`passing`), but kernels do it, as far as they can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.broker.effects import Effect
from driftline.broker.links import Role
from driftline.broker.passing import sound
from driftline.broker.publishing import Here, Publishing
from driftline.errors import FrameRefused
from driftline.model.message import Parcel
from driftline.wire.bundles import Opened, open_bundle, stamps_of
from driftline.wire.compact import HEAD_BYTES
from driftline.wire.forms import NO_FORM, Form
from driftline.wire.refusal import refused

if TYPE_CHECKING:
    from driftline.broker.intake import Hard, Intake


class _Came(NamedTuple):
    """The events of a bundle that did not come before, as records."""

    said: Opened
    records: memoryview
    entered: NDArray[np.int64]
    numbers: NDArray[np.int64]
    forms: NDArray[np.int64]
    own: Mapping[int, Form]


class Carrying:
    """Bundles that come to one broker."""

    __slots__ = ("_here", "_publishing", "garbled")

    def __init__(self, here: Here, publishing: Publishing) -> None:
        self._here = here
        self._publishing = publishing
        self.garbled = 0
        """How many bundles had something in them that was no event; the rest of these is lost."""

    def take(self, payload: bytes, sender: str, now: int) -> list[Effect]:
        """What follows from a bundle; `FrameRefused` if it is none."""
        from driftline.broker.intake import Further, Lot, Told

        here, publishing = self._here, self._publishing
        if here.links.roles.get(sender) is Role.MESH:
            raise refused("bundle", "none in a mesh, where events name their homes", "one")
        came = self._opened(payload)
        if came is None:
            return []
        said, numbers = came.said, came.numbers
        intake = publishing.ready()
        lot = Lot(now, came.entered, numbers)
        stamps = stamps_of(said.stamps)
        effects: list[Effect] = []
        taken = 0
        try:
            for piece in intake.take(came.records, came.forms, lot, here.reserve, sender):
                if isinstance(piece, Told):
                    taken += piece.events
                    effects += publishing.tell(piece)
                    here.passing.came(said.origin, int(numbers[taken - 1]))
                    here.links.passed(piece.latest)
                elif isinstance(piece, Further):
                    effects += publishing.send(piece, said.origin, said.hops, stamps)
                else:
                    parcels: list[Parcel] = []
                    try:
                        parcels.extend(self._parcels(intake, came, piece, taken))
                    finally:
                        # Those before one that is none.
                        effects += here.passing.parcels(parcels, sender, now)
                    taken += len(piece)
                    publishing.plan(intake)
        except FrameRefused:
            # What lies behind it is lost; what comes next is not to wait for it.
            self.garbled += 1
        return effects

    def _opened(self, payload: bytes) -> _Came | None:
        """What came with a bundle, if some of it did not come before."""
        from driftline.kernels.bundles import NOTICE_LEAST, unbundle

        said = open_bundle(payload)
        if said.origin == self._here.name:
            return None  # It began here, and has been had here.
        size = len(said.notices)
        out = np.empty(size, np.uint8)
        numbers = np.empty(size // NOTICE_LEAST + 1, np.int64)
        entered = np.empty_like(numbers)
        state = np.zeros(1, np.int64)
        had = self._here.passing.had(said.origin)
        raw = np.frombuffer(said.notices, np.uint8)
        count = unbundle(raw, had, out, numbers, entered, state)
        if count < 0:
            raise refused("bundle", "notices with rising numbers", "something else")
        if not count:
            return None
        forms, own = self._forms(said.forms)
        return _Came(said, out.data[: int(state[0])], entered[:count], numbers[:count], forms, own)

    def _forms(self, said: Mapping[int, Form]) -> tuple[NDArray[np.int64], dict[int, Form]]:
        """What this broker calls the forms of a bundle, and those that it knows too many for."""
        forms = np.full(max(said, default=-1) + 1, -1, np.int64)
        own: dict[int, Form] = {}
        for number, form in said.items():
            known = self._publishing.forms.number(form)
            if known == NO_FORM:
                own[number] = form
            else:
                forms[number] = known
        return forms, own

    def _parcels(
        self, intake: Intake, came: _Came, hard: list[Hard], first: int
    ) -> Iterator[Parcel]:
        """Events that are none for kernels, each by itself."""
        said = came.said
        for at, one in enumerate(hard, first):
            if at >= len(came.numbers) or one.end - one.start < HEAD_BYTES:
                raise refused("bundle", "whole records", "something else")
            event = intake.hard(came.records, one, came.forms, came.own)
            parcel = Parcel(
                said.origin,
                int(came.numbers[at]),
                event.entering(int(came.entered[at])),
                hops=said.hops,
                stamps=said.stamps,
            )
            if sound(parcel):
                yield parcel
