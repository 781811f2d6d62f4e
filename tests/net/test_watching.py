"""Is it asked anew whether anybody is interested, and not before it is known what was asked?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from driftline.language.advertising import advertisement
from driftline.net.interest import EVERY, Watching

SAYS = advertisement("SELECT * FROM q")


class World:
    """A server's loop, and what is asked of it."""

    def __init__(self) -> None:
        self.loop = self.serving = self
        self.waits: list[float] = []
        self.asked: list[tuple[str, str]] = []
        self.found: list[Any] = []

    def call_later(self, seconds: float, what: Any) -> object:
        self.waits.append(seconds)
        self.next = what
        return what

    def look(self, guest: Any, id: str, says: Any, found: Any) -> None:
        assert says is SAYS
        self.asked.append((guest.name, id))
        self.found.append(found)


def test_it_is_asked_every_second_unless_the_answer_is_still_to_come():
    world = World()
    watching = Watching(world)  # type: ignore[arg-type]
    alice, bob = SimpleNamespace(name="alice"), SimpleNamespace(name="bob")
    watching.watch(alice, "a", SAYS)
    watching.watch(bob, "a", SAYS)
    world.next()
    assert world.asked == [("alice", "a"), ("bob", "a")]
    world.found[1]()
    world.next()
    assert world.asked[2:] == [("bob", "a")]
    assert world.waits == [0, EVERY, EVERY]
    # Who has left and come again is asked about anew, whatever became of the question before.
    watching.unwatch(alice, "a")
    watching.watch(alice, "a", SAYS)
    world.next()
    assert world.asked[3:] == [("alice", "a")]
    watching.unwatch(alice, "a")
    watching.unwatch(bob, "a")
    world.next()
    assert world.waits == [0, EVERY, EVERY, EVERY]
