"""May somebody still see what they were once to be told? Grants may have been withdrawn since.

A dead letter is what was told, as it was said then. That there is one says something of whatever
was asked for when it was found, which may be something else by now: so all that must be allowed
still. Then it is looked at name by name: what a subscription called its columns was its own to
name, all else must be an attribute that may be seen.

Which way it may err: of what it is not known what was asked for, all is withheld from whoever may
not see all there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from driftline.broker.access import Access, is_kept, may_be_told
from driftline.broker.letters import Letter
from driftline.language.cloudevents import event_from
from driftline.model.pattern import Pattern


def is_withheld(access: Access, party: str, letter: Letter) -> bool:
    """Does a letter for a party say what it may not see?"""
    if not letter.made_from:
        return not access.sees_all(party)
    if not all(may_be_told(access, party, one) for one in letter.made_from):
        return True
    statement = letter.made_from[-1]
    data = msgspec.json.decode(letter.data).get("data", {})
    last = statement.steps[-1] if isinstance(statement, Pattern) else statement
    type = data.get("type") or last.source or ""
    names = access.sight(party, type, kept=is_kept(statement))
    if "type" in data and not (names.everything or names.listed):
        return True  # Of this type it may not be told at all.
    columns = {column.name for column in last.columns}
    if "key" in data and not names.is_all:
        return True
    said: Mapping[str, Any] = {**data.get("values", {}), **(data.get("old") or {})}
    if any(name not in columns and name not in names for name in said):
        return True
    events = map(event_from, data.get("events", ()))
    return any(
        name not in access.sight(party, one.type) for one in events for name in one.attributes
    )
