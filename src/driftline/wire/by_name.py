"""What can be asked of a durable subscription by its name, whoever is attached to it?

It stays attached where it is. A name is the identity's own: of another's, and of one that there is
not, the answer is the same.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from driftline.wire.fields import Message, Name, Number, Params, Text

_WITHIN = 10_000_000
_PAGE = 100
LETTERS_MOST = 10_000
"""So many letters can be named at once."""

Letters: TypeAlias = Annotated[list[Name], Meta(max_length=LETTERS_MOST)]


class Keep(Message):
    """Let there be such a durable subscription, and keep for it what it is to be told; one that
    there is is restated or moved, if it asks for something else. I am not told of it here.
    """

    request: Number
    durable: Name
    text: Text
    params: Params = {}
    within: Number = _WITHIN
    rows: bool = False
    quietly: bool = False


class Drop(Message):
    """End it for good, and forget what was kept."""

    request: Number
    durable: Name


class Had(Message):
    """Of this one everything up to the number was had."""

    request: Number
    durable: Name
    number: Number


class Route(Message):
    """Tell it through this handler, an empty one: none; nil: as it is. While it is suspended
    nothing is told, and all is kept; nil: as it is.
    """

    request: Number
    durable: Name
    handler: Text | None = None
    suspended: bool | None = None


class Durables(Message):
    """Which durable subscriptions have I got, and how are they? With a name, that one; otherwise
    some, in the order of their names, behind the one `after`. None: there are no more.
    """

    request: Number
    durable: Name = ""
    after: Name = ""


class Dead(Message):
    """Which of its dead letters are there behind the one of this id, empty: from the first on?"""

    request: Number
    durable: Name
    after: Name = ""
    most: Number = _PAGE


class Redeliver(Message):
    """Deliver these dead letters again, through the handler that it has; nil: all."""

    request: Number
    durable: Name
    letters: Letters | None = None


class Discard(Message):
    """Throw these dead letters away; nil: all."""

    request: Number
    durable: Name
    letters: Letters | None = None


class Secret(Message):
    """What are its webhooks signed with? Or, with `renew`, from now on?"""

    request: Number
    durable: Name
    renew: bool = False


ByName: TypeAlias = Keep | Drop | Had | Route | Durables | Dead | Redeliver | Discard | Secret
