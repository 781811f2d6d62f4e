"""What are the messages between a client and its broker made of?"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from driftline.wire.limits import NAME_BYTES_MAX

Number: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Handle: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Epoch: TypeAlias = Annotated[int, Meta(ge=0, le=2**30)]
"""On notices it has 32 bits; from here on nobody moves anything so often that they do not do."""
Name: TypeAlias = Annotated[str, Meta(max_length=NAME_BYTES_MAX // 4)]
Text: TypeAlias = Annotated[str, Meta(max_length=1 << 20)]
Params: TypeAlias = dict[Name, Any]


class Message(Struct, array_like=True, tag=str.lower, forbid_unknown_fields=True):
    """One message."""
