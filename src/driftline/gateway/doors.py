"""Which doors does a configuration ask for, beside the broker's own protocol?"""

from __future__ import annotations

from driftline.errors import NotSupported
from driftline.handlers import doors_of as handlers_of
from driftline.net.config import Config
from driftline.net.inside import Door


def doors_of(config: Config) -> list[Door]:
    """The doors, closed; `NotSupported` if what they are made of is not installed."""
    # First those who send: whoever comes in over HTTP may ask them something.
    doors = handlers_of(config)
    if config.http is None:
        return doors
    try:
        # Or the process would end that answers, and could only say so.
        import uvicorn  # noqa: F401

        from driftline.gateway.door import HttpDoor
    except ModuleNotFoundError as problem:
        why = f"{problem.name} is not installed: pip install 'driftline[open]'"
        raise NotSupported("http", why) from None
    return [*doors, HttpDoor(config)]
