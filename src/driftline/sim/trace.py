"""What does a frame say, in one line for people?"""

from __future__ import annotations

from driftline.errors import FrameRefused
from driftline.model.message import Control, Home, Interest, Neighbours, Offer, Steps
from driftline.wire.bundles import open_bundle
from driftline.wire.codec import decode_control
from driftline.wire.events import decode_batch
from driftline.wire.framing import Decoder, FrameKind


def described(data: bytes) -> str:
    """The frame in these bytes, or why it is none."""
    try:
        frames = Decoder().feed(data)
        if not frames:
            return "garbled: less than a frame"
        frame = frames[0]
        text = f"{frame.kind.name.lower()} {frame.sequence} (has {frame.acknowledged})"
        if frame.kind is FrameKind.CONTROL:
            return f"{text}: {_said(decode_control(frame.payload))}"
        if frame.kind is FrameKind.EVENTS:
            parcels = decode_batch(frame.payload)
            events = (f"{one.origin} {dict(one.event.attributes)}" for one in parcels)
            return f"{text}: " + "; ".join(events)
        if frame.kind is FrameKind.BUNDLE:
            said = open_bundle(frame.payload)
            types = sorted({form.type for form in said.forms.values()})
            return f"{text}: {said.events} events of {said.origin} ({', '.join(types)})"
        return text
    except FrameRefused as refusal:
        return f"garbled: {refusal}"


def _steps(steps: Steps) -> str:
    return " THEN ".join(" OR ".join(map(str, step)) for step in steps)


def _said(message: Control) -> str:
    if isinstance(message, Interest | Home):
        added = [f"+ {one}" for one in message.added.values()]
        if isinstance(message, Interest):
            added += [f"+ {_steps(one.steps)}" for one in message.sequences.values()]
        added += [f"{key}: {dict(new)}" for key, new in message.updates.items()]
        removed = [f"- {key}" for key in message.removed]
        who = f"{message.origin} wants " if isinstance(message, Home) else "wants "
        anew = message.base == 0 if isinstance(message, Home) else message.reset
        return who + ("only " if anew else "") + ("; ".join(added + removed) or "nothing")
    if isinstance(message, Offer):
        offers = [f"+ {one}" for one in message.added.values()]
        gone = [f"- {key}" for key in message.removed]
        return (
            "offers " + ("only " if message.reset else "") + ("; ".join(offers + gone) or "nothing")
        )
    if isinstance(message, Neighbours):
        return f"{message.origin} has links to {', '.join(message.links) or 'nobody'}"
    return str(message)
