"""What does somebody know of a view who has nothing but what he was told?

A snapshot is all there is to know, and comes first or after a gap. A change, or that something
left, is about what is known, and says it as it is known; what enters is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from driftline.model.notification import NotificationKind
from driftline.model.value import Value, comparable
from driftline.model.view import View, ViewKind
from driftline.stateful.news import NOTHING, News, Values, value_key


class Unchained(AssertionError):
    """What was told does not follow from what was told before."""


@dataclass(slots=True)
class Told:
    """What is known of one view: values by what they are about, each with its keys."""

    view: View
    known: dict[object, tuple[tuple[Value, ...], Values]] = field(default_factory=dict)
    anew: bool = False
    """Did what was told last begin with a gap, or with a snapshot?"""
    began: bool = False
    """Has there been anything, or, for a set, can it be told of nothing at first?"""

    def __post_init__(self) -> None:
        self.began = self.view.of is not ViewKind.AGGREGATES

    def take(self, told: Iterable[News]) -> None:
        """One delivery; raises `Unchained`."""
        self.anew = False
        for news in told:
            self._one(news)

    def _one(self, news: News) -> None:
        kind = news.kind
        if kind is NotificationKind.GAP:
            self.known.clear()
            self.anew, self.began = True, self.view.of is not ViewKind.AGGREGATES
        elif kind is NotificationKind.SNAPSHOT:
            self._check(self.anew or not self.known, news, "a snapshot without a gap")
            self.anew = self.began = True
            if news != NOTHING:
                self._put(news)
        else:
            self._check(self.began, news, "told before any snapshot")
            if kind is not NotificationKind.ENTER:
                self._gone(news)
            if kind is not NotificationKind.LEAVE:
                self._put(news)

    def _put(self, news: News) -> None:
        about = self._about(news, news.values)
        self._check(about not in self.known, news, "known already")
        self.known[about] = news.keys, news.values

    def _gone(self, news: News) -> None:
        self._check(news.old is not None, news, "nothing said of what was before")
        assert news.old is not None
        about = self._about(news, news.old)
        self._check(about in self.known, news, "not known")
        _, before = self.known.pop(about)
        self._check(equal(before, news.old), news, f"known otherwise, as {before}")

    def _about(self, news: News, values: Values) -> object:
        if self.view.of is ViewKind.AGGREGATES:
            return ()
        if self.view.of is ViewKind.DISTINCT:
            return tuple(map(value_key, values.values()))
        return tuple(map(comparable, news.keys))

    def _check(self, right: bool, news: News, why: str) -> None:
        if not right:
            raise Unchained(f"{news}: {why}; known is {list(self.known.values())}")


def equal(a: Values, b: Values) -> bool:
    """Are they equal in the language, NULL being a value?"""
    return a.keys() == b.keys() and all(value_key(a[name]) == value_key(b[name]) for name in a)
