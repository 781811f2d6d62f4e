"""What is said in the bodies of requests and answers? OpenAPI says what is said here."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from driftline.broker.policy import Policy
from driftline.client.durables import Durable
from driftline.errors import InvalidValue, LanguageError
from driftline.language.builder import Term, select
from driftline.language.cloudevents import condition_from, value_from, value_to
from driftline.language.sql import parse
from driftline.model.covering import Statement
from driftline.model.explanation import Explanation
from driftline.model.value import Value
from driftline.wire.asking import SECOND, WITHIN_MOST
from driftline.wire.by_name import LETTERS_MOST
from driftline.wire.limits import NAME_BYTES_MAX

NAME = "^[^/#\\x00-\\x1f\\x7f]+$"
"""What can stand for a name in an address."""
NAME_MAX = 250
_HALF = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")
"""The first of two that stand for one letter, alone."""
Name: TypeAlias = Annotated[str, Meta(max_length=NAME_BYTES_MAX // 4)]
"""Any other name: as long as `wire` can say it."""
LetterId: TypeAlias = Annotated[str, Meta(max_length=200, description="Of a dead letter")]
Sql: TypeAlias = Annotated[
    str,
    Meta(
        max_length=1 << 20,
        description="What to be told, in the subscription language",
        examples=["SELECT * FROM quote WHERE price < :limit"],
        extra_json_schema={"format": "driftline-sql"},
    ),
]
Params: TypeAlias = Annotated[
    dict[Name, Any],
    Meta(
        max_length=10_000,
        description='A value for each :name. A time is {"@time": "2026-01-31T09:30:00Z"}, '
        'bytes are {"@bytes": base64}, other floats {"@float": "NaN"}.',
        examples=[{"limit": 10}],
    ),
]
Number: TypeAlias = Annotated[
    str, Meta(pattern="^[0-9]{1,19}$", description="The number of a notification", examples=["7"])
]
EVENT_ID = "^([0-9a-f]{20}-[1-9][0-9]{0,18})?$"
"""The id of an event that a durable subscription was told, on a stream; empty: none."""
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=WITHIN_MOST / SECOND)]


class _Body(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A body; what it does not know is refused."""


class Subscribing(_Body):
    """What to be told: `sql`, or the `filters` of the CloudEvents Subscriptions API."""

    sql: Sql | UnsetType = UNSET
    filters: Annotated[list[Any], Meta(examples=[[{"exact": {"type": "quote"}}]])] | UnsetType = (
        UNSET
    )
    params: Params = {}
    rows: Annotated[bool, Meta(description="The live set of the rows of a table")] = False
    within: Annotated[
        Seconds,
        Meta(
            description="So many seconds every broker has to say that it is in effect there; "
            "0: only this one does"
        ),
    ] = 10.0

    def statement(self) -> Statement:
        """What is asked for."""
        if (self.sql is UNSET) == (self.filters is UNSET):
            came = "neither" if self.sql is UNSET else "both"
            raise InvalidValue("subscription", "sql or filters", came)
        if self.sql is not UNSET:
            return parse(self.sql)
        return select(where=Term(condition_from(self.filters)))

    def values(self) -> dict[str, Value]:
        """The values of the parameters."""
        return values_of(self.params)


class Streaming(Subscribing):
    """A subscription for as long as somebody listens."""

    on_change: Annotated[
        Literal["silent", "reevaluate"],
        Meta(description="Of a moved bound: what it lets in, too"),
    ] = "silent"
    policy: Annotated[
        dict[Name, Any],
        Meta(
            max_length=20,
            description="What becomes of what is not read fast enough",
            examples=[{"overflow": "conflate", "key": "symbol"}],
        ),
    ] = {}

    def checked_policy(self) -> dict[str, Any]:
        """The policy; `InvalidValue` if it is none."""
        Policy.of_options(self.policy)
        return self.policy


class Publishing(_Body):
    """How to publish."""

    once: Annotated[
        bool, Meta(description="Pass over what came so before from you, by source and id")
    ] = False


class After(_Body):
    """From where to go on."""

    after: Annotated[str, Meta(pattern=EVENT_ID, description="If no Last-Event-ID says it")] = ""


class Parameters(_Body):
    """All parameters of a subscription."""

    params: Params
    within: Seconds = 10.0


class Acknowledged(_Body):
    """Everything up to a number was dealt with."""

    number: Number


class Declared(_Body):
    """Events of a type are the rows of a table."""

    key: Annotated[str, Meta(min_length=1, max_length=1024, examples=["symbol"])]
    ticks: Annotated[dict[Name, str], Meta(max_length=1_000, examples=[{"price": "0.01"}])] = {}


class Deleting(_Body):
    """A row of a table is to be removed."""

    key: Any


class Observed(_Body):
    """A variable of the environment has this value; null: nobody knows."""

    value: Any


class Advertising(_Body):
    """What somebody would publish."""

    advertisement: Annotated[
        str, Meta(max_length=1 << 20, examples=["SELECT * FROM quote WHERE price IS NOT NULL"])
    ]
    within: Seconds = 10.0


class Handler(_Body):
    """Where to tell a subscription: the address of a webhook, or `mailto:`."""

    address: Annotated[
        str, Meta(min_length=1, max_length=2000, examples=["https://hooks.example.org/alice"])
    ]


class Renewing(_Body):
    """What webhooks are signed with is asked for, or another from now on."""

    renew: bool = False


class Which(_Body):
    """Some dead letters by their ids; without them, all."""

    ids: Annotated[list[LetterId], Meta(max_length=LETTERS_MOST)] | None = None


# Answers


class Published(Struct):
    """How many events were published."""

    published: int


class Kept(Struct):
    """There is such a subscription now."""

    name: str
    created: bool
    epoch: int


class Moved(Struct):
    """A change counts from this epoch on."""

    epoch: int


class Wanted(Struct):
    """Does anybody want it?"""

    interested: bool


class Described(Struct):
    """A durable subscription."""

    name: str
    sql: str
    rows: bool
    params: dict[str, Any]
    epoch: int
    kept: int
    next: str | None
    attached: bool
    suspended: bool
    matched: int
    handler: str | None
    failing: str | None
    attempts: int
    dead: int
    forgotten: int


class Letter(Struct):
    """A dead letter: what was to be told, and why it was given up."""

    id: str
    why: str
    attempts: int
    time: str
    event: Any
    again: bool


class Letters(Struct):
    """Dead letters, the oldest first; for more, ask with the last id as `after`."""

    letters: list[Letter]


class Counted(Struct):
    """How many there were."""

    letters: int


class Secret(Struct):
    """What webhooks are signed with (HMAC-SHA256, as Standard Webhooks has it)."""

    secret: str


class AfterLetter(_Body):
    """From where to go on."""

    after: LetterId = ""


class Listed(Struct):
    """Durable subscriptions."""

    subscriptions: list[Described]


class Explained(Struct):
    """Why an event does or does not match: each condition, and the values that it saw."""

    text: str
    outcome: bool | None
    reason: str | None
    seen: dict[str, Any]
    decided: bool
    parts: list[Explained]


class Refusal(Struct):
    """One of many that were refused: the place it had."""

    index: int
    type: str
    detail: str


class Problem(Struct):
    """Why something was not done (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    line: int | UnsetType = UNSET
    column: int | UnsetType | None = UNSET
    silent: list[str] | UnsetType = UNSET
    published: int | UnsetType = UNSET
    refused: list[Refusal] | UnsetType = UNSET
    left_off: int | UnsetType = UNSET


def described(one: Durable) -> Described:
    """A durable subscription, as it is said."""
    return Described(
        one.name,
        one.text,
        one.rows,
        {name: value_to(value) for name, value in one.params.items()},
        one.epoch,
        one.kept,
        str(one.next) if one.next else None,
        one.attached,
        one.suspended,
        one.matched,
        one.handler or None,
        one.failing or None,
        one.attempts,
        one.dead,
        one.forgotten,
    )


def explained(one: Explanation) -> Explained:
    """An explanation, as it is said."""
    return Explained(
        one.text,
        one.outcome,
        one.reason,
        {name: value_to(value) for name, value in one.seen.items()},
        one.decided,
        [explained(part) for part in one.parts],
    )


def values_of(said: dict[str, Any]) -> dict[str, Value]:
    """Parameters, from JSON."""
    return {name: value_from(value, f":{name}") for name, value in said.items()}


def _no_json(raw: bytes, problem: msgspec.DecodeError) -> str:
    """Why it is none. Of what ends too early msgspec says so; also of half of a pair that does."""
    if "truncated" not in str(problem):
        return str(problem)
    if not raw.strip():
        return "nothing"
    return "half of a surrogate pair" if _HALF.search(raw) else "a text that ends too early"


def read_json(raw: bytes, kind: Any = Any) -> Any:
    """What a text in JSON says; `LanguageError` if it is none, `InvalidValue` if it is another."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as problem:
        raise InvalidValue("body", "what is described", str(problem)) from None
    except UnicodeDecodeError as problem:
        raise LanguageError("JSON", f"no UTF-8: {problem.reason}") from None
    except msgspec.DecodeError as problem:
        raise LanguageError("JSON", _no_json(raw, problem)) from None
    except RecursionError:
        raise LanguageError("JSON that is less deep", "deeper") from None
