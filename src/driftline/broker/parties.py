"""Which parties are there, and what waits for each?

What a party was told is kept until it says that it has had it, and so is what comes while it is
suspended, up to so many and so many bytes; beyond these the oldest is forgotten, and the next
delivery says that there is a gap. Of a party that is not durable nothing is kept unless it is
suspended, and nothing of it survives the broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from driftline.broker.effects import Deliver, DeliverMany, Key
from driftline.broker.kept import Kept
from driftline.broker.letters import Letter, Letters
from driftline.broker.requests import Bury, Discard, Renew, Revive
from driftline.broker.settings import Settings
from driftline.broker.slots import Slots

SECRETS_EACH = 1 << 20
"""The generation with which a party begins is a multiple of this: of one name no two parties have a
secret in common."""


def is_first(generation: int) -> bool:
    """Is it the secret with which a party began? Then none was before it.

    >>> is_first(3 * SECRETS_EACH), is_first(3 * SECRETS_EACH + 1)
    (True, False)
    """
    return generation % SECRETS_EACH == 0


@dataclass(slots=True)
class Party:
    """One identity, what it is told through, and what it has not said it has had."""

    letters: Letters
    """What its handler has given up on."""
    durable: bool = True
    suspended: bool = False
    handler: str = ""
    waiting: deque[Deliver | Kept] = field(default_factory=deque)
    kept: int = 0
    """How many notices wait."""
    kept_bytes: int = 0
    """About how many bytes these take."""
    had: int = 0
    """Up to where the first of those that lie together were had; 0: none of them."""
    generation: int = 0
    """Which secret it has: that with which it began, or so many behind it (see `is_first`)."""
    born: int = 0
    """Above this are all numbers that it was told anything under."""
    ids: dict[str, None] = field(default_factory=dict, compare=False)
    """Its subscriptions."""
    dropped: int = field(default=0, compare=False)
    """How many were forgotten before it said that it had had them, in this life of the broker."""


class Parties(Mapping[str, Party]):
    """The local parties by name; each has a slot. `put` journals.

    If it is certain that whoever is told has it (`alone`), nobody need say so.
    """

    __slots__ = (
        "_certain",
        "_known",
        "_limit",
        "_limit_bytes",
        "_put",
        "_settings",
        "handled",
        "kept",
        "slots",
    )

    def __init__(self, settings: Settings, put: Callable[[Key, object], None]) -> None:
        self._known: dict[str, Party] = {}
        self._limit = max(1, settings.keep)
        self._limit_bytes = settings.keep_bytes
        self._settings = settings
        self._certain = settings.alone
        self._put = put
        self.slots = Slots()
        self.kept = 0
        """How many notices wait for all of them."""
        self.handled: dict[str, None] = {}
        """Those that have a handler."""

    def __getitem__(self, name: str) -> Party:
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    # Who is there

    def know(self, name: str) -> Party:
        """What is known of a party, new or known."""
        party = self._known.get(name)
        if party is None:
            dead, dead_bytes = self._settings.dead, self._settings.dead_bytes
            party = self._known[name] = Party(Letters(dead, dead_bytes, self._put))
            self.slots.enter(name, kept=True)
        return party

    def is_durable(self, name: str) -> bool:
        """Does what is known of a party survive? One that is not known here may be anybody."""
        party = self._known.get(name)
        return party is None or party.durable

    def enter(self, name: str, *, durable: bool, born: int = 0, generation: int = 0) -> None:
        """There is a party; one that is not durable has nothing that would survive it.

        Nothing that it will be told has a number up to `born`. With the generation it begins, if it
        is new.
        """
        is_new = name not in self._known
        party = self.know(name)
        party.durable = durable
        if born and not party.born:
            party.born = born
            self._note(party, ("born", name), born)
        if is_new and generation:
            party.generation = generation
            self._note(party, ("generation", name), generation)
        self.slots.enter(name, kept=durable or party.suspended)

    def leave(self, name: str) -> None:
        """A party without subscriptions is gone for good, and all that was kept for it."""
        party = self._known.pop(name, None)
        if party is None:
            return
        assert not party.ids
        self.handled.pop(name, None)
        for waiting in party.waiting:
            self._forget(name, party, waiting)
        for kind in ("suspended", "handler", "had", "generation", "born"):
            self._note(party, (kind, name), None)
        party.letters.leave(name)
        self.slots.leave(name)

    def _note(self, party: Party, key: Key, value: object) -> None:
        if party.durable:
            self._put(key, value)

    # What waits

    def left(self, name: str) -> tuple[int, int]:
        """How many things a party has not said it has had, and the number of the first; 0: none."""
        party = self._known[name]
        if not party.waiting:
            return 0, 0
        first = party.waiting[0]
        if not party.had:
            return party.kept, first.number
        assert isinstance(first, Kept)
        rest = [*first.numbers(party.had)]
        return party.kept - first.notices + len(rest), rest[0]

    def wait(self, deliver: Deliver) -> bool:
        """Keep it until the party has had it; is it to be told now?"""
        party = self._known[deliver.party]
        if (self._certain or not party.durable) and not party.suspended:
            return True
        return self.keep(deliver.party, deliver)

    def keep(self, name: str, one: Deliver | Kept) -> bool:
        """Keep something until a party has had it; is it to be told now?"""
        party = self._known[name]
        self._wait(party, one)
        self._note(party, (one.stored_as, name, str(one.number)), one.stored)
        # The latest is kept however large it is: no event is larger than a frame.
        while self._is_too_much(party) and len(party.waiting) > 1:
            lost = party.waiting.popleft()
            party.dropped += lost.notices
            self._forget(name, party, lost)
            self._had_some(name, party, 0)
            # It may never have been told: a crash may come before all of this is.
            first = party.waiting[0].behind(lost)
            party.kept_bytes += first.size - party.waiting[0].size
            party.waiting[0] = first
            self._note(party, (first.stored_as, name, str(first.number)), first.stored)
        return not party.suspended

    def _is_too_much(self, party: Party) -> bool:
        return party.kept > self._limit or party.kept_bytes > self._limit_bytes

    def _wait(self, party: Party, one: Deliver | Kept) -> None:
        party.waiting.append(one)
        party.kept += one.notices
        self.kept += one.notices
        party.kept_bytes += one.size

    def _forget(self, name: str, party: Party, one: Deliver | Kept) -> None:
        party.kept -= one.notices
        self.kept -= one.notices
        party.kept_bytes -= one.size
        self._note(party, (one.stored_as, name, str(one.number)), None)

    def _had_some(self, name: str, party: Party, number: int) -> None:
        if number != party.had:
            party.had = number
            self._note(party, ("had", name), number or None)

    def had(self, name: str, number: int) -> None:
        """A party has had everything up to a number."""
        party = self.know(name)
        if number <= party.had:
            return  # It has said so already: this one was overtaken.
        while party.waiting and party.waiting[0].last <= number:
            self._forget(name, party, party.waiting.popleft())
        # Of notices that lie together some may have been had.
        is_part = bool(party.waiting) and party.waiting[0].number <= number
        self._had_some(name, party, number if is_part else 0)

    def attend(self, name: str, asked: Bury | Revive | Discard | Renew) -> None:
        """Do what is asked about what could not be handed over, or how it is signed."""
        if isinstance(asked, Bury):
            self._bury(name, asked.number, asked.letter)
        elif isinstance(asked, Revive):
            self.know(name).letters.revive(name, asked.letters)
        elif isinstance(asked, Discard):
            self.know(name).letters.discard(name, asked.letters)
        else:
            party = self.know(name)
            party.generation += 1
            self._note(party, ("generation", name), party.generation)

    def _bury(self, name: str, number: int, letter: Letter) -> None:
        """A party could not be told something: it is had, and kept as a dead letter.

        What had a part in its id is not all of its number: that is had with the last one. Nothing
        is kept of what was had meanwhile in another way, or forgotten.
        """
        party = self.know(name)
        if not number:
            if letter.id in party.letters:
                party.letters.bury(name, letter)
            return
        if party.waiting and max(party.had + 1, party.waiting[0].number) <= number:
            party.letters.bury(name, letter)
        if letter.id == str(number):
            self.had(name, number)

    def through(self, deliver: Deliver) -> Deliver:
        """The delivery, by the handler that its party has now."""
        handler = self._known[deliver.party].handler
        return replace(deliver, handler=handler) if handler else deliver

    def _told(self, name: str) -> list[Deliver | DeliverMany]:
        """What waits for a party, to be told now."""
        return [
            self.through(one) if isinstance(one, Deliver) else one.delivery(name)
            for one in self._known[name].waiting
        ]

    # What a party can ask

    def suspend(self, name: str) -> None:
        """Keep what comes for a party."""
        party = self.know(name)
        party.suspended = True
        self.slots.enter(name, kept=True)
        self._note(party, ("suspended", name), True)

    def resume(self, name: str) -> list[Deliver | DeliverMany]:
        """What waits for a party, which is told again from now on."""
        party = self.know(name)
        party.suspended = False
        self.slots.enter(name, kept=party.durable)
        self._note(party, ("suspended", name), None)
        told = self._told(name)
        if self._certain or not party.durable:
            party.waiting.clear()
            self.kept -= party.kept
            party.kept = party.kept_bytes = 0
        return told

    def redirect(self, name: str, handler: str) -> list[Deliver | DeliverMany]:
        """Tell a party through another handler; what it may not have had, too."""
        party = self.know(name)
        party.handler = handler
        if handler:
            self.handled[name] = None
        else:
            self.handled.pop(name, None)
        self._note(party, ("handler", name), handler or None)
        return [] if party.suspended else self._told(name)

    # After a crash

    def restore(self, stored: Mapping[Key, object]) -> None:
        """Begin with what an earlier life of the broker has kept."""
        waiting: list[tuple[str, Deliver | Kept]] = []
        for key, value in stored.items():
            if key[0] == "suspended":
                self.know(key[1]).suspended = True
            elif key[0] == "handler":
                assert isinstance(value, str)
                self.know(key[1]).handler = value
                self.handled[key[1]] = None
            elif key[0] == "dead":
                assert isinstance(value, Letter)
                self.know(key[1]).letters.restore(value)
            elif key[0] == "forgotten":
                assert isinstance(value, int)
                self.know(key[1]).letters.forgotten = value
            elif key[0] == "generation":
                assert isinstance(value, int)
                self.know(key[1]).generation = value
            elif key[0] == "born":
                assert isinstance(value, int)
                self.know(key[1]).born = value
            elif key[0] == "had":
                assert isinstance(value, int)
                self.know(key[1]).had = value
            elif key[0] == "deliver":
                assert isinstance(value, Deliver)
                waiting.append((key[1], value))
            elif key[0] == "kept":
                assert isinstance(value, bytes)
                waiting.append((key[1], Kept.of(value)))
        for name, one in sorted(waiting, key=lambda pair: pair[1].number):
            self._wait(self.know(name), one)

    def again(self) -> list[Deliver | DeliverMany]:
        """What to tell all parties after a crash: they pass over what they have had."""
        names = [name for name, party in self._known.items() if not party.suspended]
        return [one for name in names for one in self._told(name)]

    def _check(self) -> None:
        self.slots._check()
        assert {*self.handled} == {name for name, party in self._known.items() if party.handler}
        assert self.kept == sum(party.kept for party in self._known.values())
        for party in self._known.values():
            assert party.kept == sum(one.notices for one in party.waiting)
            assert party.kept_bytes == sum(one.size for one in party.waiting)
            party.letters._check()
            assert not party.had or party.waiting[0].number <= party.had < party.waiting[0].last
