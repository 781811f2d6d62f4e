"""Is what was said in effect everywhere? A wave through the overlay and its echo [PARAM §9.3].

Who is asked asks all further on and answers when they have. What was said before the question is in
effect wherever the question has been, because a link keeps the order. Where links form cycles a
broker is asked more than once: the second question is itself an answer, since whoever puts it has
been asked already. Who does not answer in time is named.

Where interest goes only to what is offered, it may be asked for while offers are still on their way
to a broker that has just joined: they come back ahead of the answers, and the interest they draw
goes out behind the question. So there the question is put once more (`again`), and goes behind it.

Another question goes the same way: is anybody interested in this? The first who is answers yes, and
then nobody else need be waited for. Where very many have subscribed it takes long to find out that
nobody is: then it is found out in parts, for one who asks after the other, while others are asked
too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from driftline.broker.effects import Effect, Reply, Send
from driftline.model.message import Answer, Ask

NEVER = 1 << 62
LOOKS, PERIOD = 100, 10_000
"""So many subscriptions are looked at in so many microseconds: it takes a tenth of them, or two."""
QUICK = 32
"""So many of another type are looked at as one."""
_REMEMBERED = 1000


@dataclass(slots=True)
class _Wave:
    """One question: who put it, whose answers are due, and until when.

    `here`: those at this broker who have not been looked at yet, if it is about interest: does one
    after the other want it?
    """

    parent: str
    request: str | None
    waiting: dict[str, None]
    until: int
    asked: Ask | None = None
    silent: dict[str, None] = field(default_factory=dict)
    interested: bool = False
    again: Ask | None = None
    links: tuple[str, ...] = ()
    here: Iterator[bool] | None = None


class Waves:
    """The questions that a broker has passed on."""

    __slots__ = ("_left", "_looking", "_next", "_over", "_waves")

    def __init__(self) -> None:
        self._waves: dict[str, _Wave] = {}
        self._looking: deque[str] = deque()
        """For whom some have to be looked at yet, the first of them first."""
        self._left, self._next = 0, 0
        """So many may be looked at until then."""
        # Somebody further round may still put the question, or whoever did not hear the answer.
        self._over: dict[str, Answer] = {}

    def begin(
        self,
        asked: Ask,
        party: str,
        request: str,
        links: Iterable[str],
        now: int,
        again: Ask | None = None,
        here: Iterator[bool] | None = None,
    ) -> list[Effect]:
        """A party wants to know; when all have answered, `again` is asked before it is told."""
        until = now + asked.within
        wave = _Wave(party, request, dict.fromkeys(links), until, again=again, here=here)
        return self._pass_on(asked, wave, now)

    def has(self, token: str) -> bool:
        """Has this been asked before?"""
        return token in self._waves or token in self._over

    def ask(
        self,
        asked: Ask,
        sender: str,
        links: Iterable[str],
        now: int,
        here: Iterator[bool] | None = None,
    ) -> list[Effect]:
        """A neighbour wants to know; `links` are those that must be asked."""
        if asked.token in self._waves:
            return self.answer(Answer(asked.token), sender, now)
        if asked.token in self._over:
            return [Send(sender, self._over[asked.token])]
        further = dict.fromkeys(link for link in links if link != sender)
        # Sooner than whoever asks, so that the answer comes in time.
        within = asked.within * 9 // 10
        wave = _Wave(sender, None, further, now + within, here=here)
        return self._pass_on(Ask(asked.token, within, asked.says), wave, now)

    def _pass_on(self, asked: Ask, wave: _Wave, now: int) -> list[Effect]:
        self._waves[asked.token] = wave
        wave.asked = asked
        wave.links = tuple(wave.waiting)
        if wave.here is not None:
            # The rest of those who could not be looked at, if there are any.
            self._looking.append(asked.token)
        return [*(Send(link, asked) for link in wave.links), *self._ended(asked.token, now)]

    def answer(self, said: Answer, sender: str, now: int) -> list[Effect]:
        """A neighbour has answered."""
        wave = self._waves.get(said.token)
        if wave is None:
            return []
        wave.waiting.pop(sender, None)
        wave.silent.update(dict.fromkeys(said.silent))
        if said.interested:
            _is_wanted(wave)
        return self._ended(said.token, now)

    def look(self, here: Iterator[bool], now: int) -> bool | None:
        """Does somebody want it, of as many as may be looked at now? None: of the rest, perhaps."""
        if now >= self._next:
            self._left, self._next = LOOKS, now + PERIOD
        while self._left:
            self._left -= 1
            wanted = next(here, None)
            if wanted is not False:
                return wanted is True
        return None

    def _look_on(self, now: int) -> list[Effect]:
        """Look at some more of those here, for whoever has asked first."""
        effects: list[Effect] = []
        while self._looking:
            token = self._looking[0]
            wave = self._waves.get(token)
            if wave is not None and wave.here is not None:
                wanted = self.look(wave.here, now)
                if wanted is None:
                    break
                wave.here = None
                if wanted:
                    _is_wanted(wave)
                effects += self._ended(token, now)
            self._looking.popleft()
        return effects

    def again(self, link: str, now: int) -> list[Effect]:
        """A session on a link has begun: what was asked before it never came, or its answer."""
        effects: list[Effect] = []
        for wave in self._waves.values():
            if link in wave.waiting and wave.asked is not None and wave.until > now:
                effects.append(Send(link, replace(wave.asked, within=wave.until - now)))
        return effects

    def leave(self, party: str) -> None:
        """A party has gone: nobody waits for the answers to what it asked."""
        asked = [token for token, one in self._waves.items() if one.request and one.parent == party]
        for token in asked:
            del self._waves[token]
            self._remember(Answer(token))

    def wake(self, now: int) -> list[Effect]:
        """Look at those here who have not been; give up those who have not answered in time."""
        effects = self._look_on(now)
        for token, wave in list(self._waves.items()):
            if wave.until <= now:
                if wave.here is not None:
                    # Who can tell: yes is said too often, no is not.
                    _is_wanted(wave)
                wave.silent.update(wave.waiting)
                wave.waiting.clear()
                effects += self._ended(token, now)
        return effects

    def wake_at(self) -> int:
        """When there is more to be looked at, or the first of them is given up."""
        until = min((wave.until for wave in self._waves.values()), default=NEVER)
        return min(until, self._next) if self._looking else until

    def _remember(self, answer: Answer) -> None:
        self._over[answer.token] = answer
        if len(self._over) > _REMEMBERED:
            del self._over[next(iter(self._over))]

    def _ended(self, token: str, now: int) -> list[Effect]:
        wave = self._waves[token]
        if wave.waiting or wave.here is not None:
            return []
        del self._waves[token]
        silent = () if wave.interested else tuple(sorted(wave.silent))
        answer = Answer(token, silent, wave.interested)
        self._remember(answer)
        if wave.again is not None and not wave.silent:
            once_more = _Wave(wave.parent, wave.request, dict.fromkeys(wave.links), wave.until)
            within = max(1, wave.until - now)
            return self._pass_on(replace(wave.again, within=within), once_more, now)
        if wave.request is not None:
            reply = Reply(wave.parent, wave.request, silent=silent, interested=wave.interested)
            return [reply]
        return [Send(wave.parent, answer)]


def _is_wanted(wave: _Wave) -> None:
    """Somebody wants it: nobody else need be waited for, nor looked at."""
    wave.interested = True
    wave.here = None
    wave.waiting.clear()
