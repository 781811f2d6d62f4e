"""Who wants what, and what must each neighbour be told of it? [SIENA §5.2.2–5.2.3]

A neighbour is told of a filter if somebody else wants it, unless it was told of one that covers it:

    forwards(f) = neighbours - NST(f) - forwards(f') for every f' that covers f        (equation 1)

In the topologies that use this table NST(f), the neighbours that are "not on a spanning tree", is
the neighbour that alone wants f: it needs no telling of its own interest.

A table takes changes and says, when asked to settle, what each neighbour must be told by now. All
of it is one message, which the neighbour applies at once: what a cancelled filter had covered is
there before the filter is gone, so no event slips between the two. (The paper sends the
unsubscription first and then what it uncovers, and loses what is published in between.)

    >>> from driftline.language.sql import parse
    >>> from driftline.matching.relations import Relations
    >>> (general,), (narrow,) = (parse(f"SELECT * WHERE {text}").filters()
    ...                          for text in ("x > 0", "x > 100"))
    >>> table = Table(Relations())
    >>> table.open("next")
    >>> table.put("a", 1, narrow); table.settle()["next"].told()
    ['+ x > 100']
    >>> table.put("b", 1, general); table.settle()["next"].told()
    ['+ x > 0', '- x > 100']
    >>> table.drop("b", 1); table.settle()["next"].told()
    ['+ x > 100', '- x > 0']
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from driftline.matching.order import Node, Order

Interface: TypeAlias = str
Key: TypeAlias = Hashable
T = TypeVar("T")

# What a neighbour knows of a filter: told of it, or of one that covers it. Otherwise it is absent.
_TOLD, _COVERED = True, False


@dataclass(slots=True)
class Change(Generic[T]):
    """What one neighbour must be told, all at once: filters by the keys they go by."""

    added: dict[str, T] = field(default_factory=dict)
    removed: dict[str, T] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def told(self) -> list[str]:
        """One line per filter, for people."""
        return [f"+ {one}" for one in self.added.values()] + [
            f"- {one}" for one in self.removed.values()
        ]


class Table(Generic[T]):
    """The filters that interfaces want, and which of them each neighbour was told of.

    Of advertisements the same is asked [SIENA §5.2.4]: what covers what is a matter of `order`.
    """

    __slots__ = (
        "_allowed",
        "_held",
        "_known",
        "_order",
        "_stale",
        "_touched",
        "_unsaid",
    )

    def __init__(self, order: Order[Any]) -> None:
        self._order = order
        self._held: dict[Interface, dict[Key, Node]] = {}
        self._known: dict[Interface, dict[Node, bool]] = {}
        self._allowed: dict[Interface, Callable[[T], bool] | None] = {}
        self._unsaid: dict[Interface, Change[T]] = {}
        # What must be looked at again, for every neighbour and for one alone.
        self._touched: dict[Node, None] = {}
        self._stale: dict[Interface, dict[Node, None]] = {}

    # What interfaces want

    def put(self, owner: Interface, key: Key, wanted: T) -> None:
        """Let an interface want a filter, which replaces what it wanted by this key."""
        node = self._order.node(wanted)
        if node is not None and node is self._held.get(owner, {}).get(key):
            return
        if node is not None:
            owners = node.owners
            if not owners:
                # It may stand between others now.
                self._touched.update(node.predecessors)
            owners[owner] = owners.get(owner, 0) + 1
            self._touched[node] = None
        self.drop(owner, key)
        if node is not None:  # else nothing satisfies it
            self._held.setdefault(owner, {})[key] = node

    def drop(self, owner: Interface, key: Key) -> None:
        """Let an interface no longer want what goes by this key."""
        held = self._held.get(owner, {})
        node = held.pop(key, None)
        if node is None:
            return
        if not held:
            del self._held[owner]
        owners = node.owners
        owners[owner] -= 1
        self._touched[node] = None
        if owners[owner] == 0:
            del owners[owner]
            if not owners:
                self._remove(node)

    def drop_all(self, owner: Interface) -> None:
        """Let an interface want nothing any more."""
        for key in list(self._held.get(owner, ())):
            self.drop(owner, key)

    def keys(self, owner: Interface) -> list[Key]:
        """The keys of what an interface wants."""
        return list(self._held.get(owner, ()))

    def held(self, owner: Interface) -> Iterator[T]:
        """What an interface wants."""
        return (node.said for node in self._held.get(owner, {}).values())

    def _remove(self, node: Node) -> None:
        self._touched.pop(node, None)
        for stale in self._stale.values():
            stale.pop(node, None)
        self._touched.update(node.predecessors)
        self._order.remove(node)
        for out in self._known:
            if self._known[out].pop(node, None) is _TOLD:
                self._say(out, node, told=False)

    # What neighbours are told

    def open(self, out: Interface, allowed: Callable[[T], bool] | None = None) -> None:
        """There is a neighbour that must be told, from now on, of what the others want.

        Only of what is `allowed`, which may change: then `reconsider`.
        """
        self._known[out] = {}
        self._unsaid[out] = Change()
        self._allowed[out] = allowed
        self._stale[out] = dict.fromkeys(self._order)

    def reconsider(self, out: Interface, concerned: Callable[[T], bool]) -> None:
        """Whether a neighbour may be told of what is concerned has perhaps changed."""
        if out in self._known:
            nodes = (node for node in self._order if concerned(node.said))
            self._stale[out].update(dict.fromkeys(nodes))

    def close(self, out: Interface) -> None:
        """The neighbour is gone, and with it what it was told."""
        for by_neighbour in (self._known, self._unsaid, self._allowed, self._stale):
            by_neighbour.pop(out, None)

    def settle(self) -> dict[Interface, Change[T]]:
        """What each neighbour must be told by now; nobody has to ask again for the same."""
        for out in self._known:
            self._settle(out)
        self._touched.clear()
        said = {out: change for out, change in self._unsaid.items() if change}
        for out in said:
            self._unsaid[out] = Change()
        return said

    def _settle(self, out: Interface) -> None:
        """Bring what a neighbour knows up to date, from the touched filters downwards.

        What is to be known of a filter depends on what covers it alone, so going down the covering
        relation comes to an end.
        """
        known = self._known[out]
        queue = [*self._touched, *self._stale[out]]
        self._stale[out].clear()
        for node in queue:  # which grows
            before, after = known.get(node), self._knowing(out, node)
            if before is after:
                continue
            if after is None:
                del known[node]
            else:
                known[node] = after
            if _TOLD in (before, after):
                self._say(out, node, told=after is _TOLD)
            if None in (before, after):
                queue.extend(node.predecessors)

    def _knowing(self, out: Interface, node: Node) -> bool | None:
        known = self._known[out]
        if any(above in known for above in node.successors):
            return _COVERED
        if not any(owner != out for owner in node.owners):
            return None
        allowed = self._allowed[out]
        return _TOLD if allowed is None or allowed(node.said) else None

    def _say(self, out: Interface, node: Node, *, told: bool) -> None:
        change = self._unsaid[out]
        says, unsays = change.added, change.removed
        if not told:
            says, unsays = unsays, says
        # What was to be said the other way round need not be said at all.
        if unsays.pop(node.id, None) is None:
            says[node.id] = node.said

    # Looking

    def told(self, out: Interface) -> dict[str, T]:
        """All that a neighbour has been told, or will be when the table settles."""
        return {node.id: node.said for node, knows in self._known[out].items() if knows is _TOLD}

    def owners(self, id: str) -> Iterable[Interface]:
        """Who wants the filter that goes by this key."""
        owners: dict[Interface, int] = self._order.by_id(id).owners
        return owners

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return ((node.id, node.said) for node in self._order)

    def __len__(self) -> int:
        return len(self._order)

    def _check(self) -> None:
        """Assert equation 1, from scratch, for every filter and neighbour."""
        assert not any((self._touched, *self._stale.values())), "not settled"
        self._order._check()
        counted: dict[Node, dict[Interface, int]] = {}
        for owner, held in self._held.items():
            assert held
            for node in held.values():
                owners = counted.setdefault(node, {})
                owners[owner] = owners.get(owner, 0) + 1
        assert counted == {node: node.owners for node in self._order}
        assert set(counted) == set(self._order)
        for out, known in self._known.items():
            allowed = self._allowed[out] or (lambda _: True)
            wanted = [node for node in counted if set(counted[node]) - {out} and allowed(node.said)]
            told = [
                node
                for node in wanted
                if not any(one is not node and one.covers(node) for one in wanted)
            ]
            assert {node for node, knows in known.items() if knows is _TOLD} == set(told)
