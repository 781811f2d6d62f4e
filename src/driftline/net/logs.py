"""What does a broker say of itself while it runs, how is it written, and what is never said?

    log = Log("driftline.broker").bind(broker="london")
    log.info("link up", link="paris")

An event and named facts, not a sentence: as text one line, as JSON one object. Both go to standard
error, with what libraries log. Secrets are taken out of everything, whoever wrote it: tokens,
passwords in addresses, the paths of addresses on the web, whatever stands behind a name that says
so.

What strangers can cause (`stranger`) is said some times a minute; what was passed over is counted
and said later: nobody is to fill a disk from outside.

JSON is written by structlog, an extra; text needs nothing. Handlers of a program that runs a broker
in itself get records of `logging`, whose message is the event and its facts.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from driftline.broker.place import place_of
from driftline.errors import InvalidValue
from driftline.model.value import show

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
SAME_MOST = 20
"""So many lines of one kind that strangers cause are written ..."""
SAME_WITHIN = 60.0
"""... in so many seconds."""
_LONGEST = 2000
LINE = "_line"
"""A fact of this name is what a text says in the place of the event and its facts."""

_FIRST = ("event", "broker")
_SECRET = "***"
_SECRETS = (
    (re.compile(r"eyJ[\w-]{4,}\.[\w-]*\.[\w-]*"), _SECRET),  # a JSON Web Token
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s'\",]+"), rf"\1 {_SECRET}"),
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]*):[^\s]*@", re.I), rf"\1:{_SECRET}@"),
    (
        re.compile(
            r"(?i)((?:password|passwd|pwd|secret|token)\b['\"]?\s*[=:]\s*['\"]?)[^\s'\"&,;)]+"
        ),
        rf"\1{_SECRET}",
    ),
)
_WEB = re.compile(r"\bhttps?://[^\s\"<>]+", re.I)
_CLOSING = "'),.:;]}"
"""What ends the words that an address stands in, not the address."""
_SECRET_NAMES = frozenset(("token", "authorization", "password", "secret"))


@dataclass(frozen=True, slots=True)
class Logs:
    """How a broker logs."""

    format: str = "text"
    level: str = "info"

    def __post_init__(self) -> None:
        for name, known in (("format", FORMATS), ("level", LEVELS)):
            if getattr(self, name) not in known:
                said = show(getattr(self, name))
                raise InvalidValue(f"logs.{name}", f"one of {', '.join(known)}", said)


def without_secrets(text: str) -> str:
    """A text as it may be written down.

    >>> without_secrets("connecting to postgresql://b:geheim@host/db failed")
    'connecting to postgresql://b:***@host/db failed'
    """
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return _WEB.sub(_place, text)


def _place(found: re.Match[str]) -> str:
    said = found[0]
    address = said.rstrip(_CLOSING)
    return place_of(address) + said[len(address) :]


class _Said:
    """An event and its facts, as the message of a record."""

    __slots__ = ("event", "facts")

    def __init__(self, event: str, facts: Mapping[str, object]) -> None:
        self.event = event
        self.facts = facts

    def __str__(self) -> str:
        return _words(_censored({"event": self.event, **self.facts}))


class Log:
    """A logger whose lines are events with facts; `bind` gives one that adds some to each."""

    __slots__ = ("_facts", "_logger", "_seldom")

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        self._facts: dict[str, object] = {}
        self._seldom: dict[str, _Seldom] = {}

    def bind(self, **facts: object) -> Log:
        """This, with some facts more."""
        bound = Log(self._logger.name)
        bound._facts = {**self._facts, **facts}
        bound._seldom = self._seldom
        return bound

    def _say(self, level: int, event: str, facts: Mapping[str, object]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, _Said(event, {**self._facts, **facts}))

    def debug(self, event: str, **facts: object) -> None:
        """For whoever looks for something."""
        self._say(logging.DEBUG, event, facts)

    def info(self, event: str, **facts: object) -> None:
        """For whoever reads along."""
        self._say(logging.INFO, event, facts)

    def warning(self, event: str, **facts: object) -> None:
        """For whoever is to look after it some time."""
        self._say(logging.WARNING, event, facts)

    def error(self, event: str, **facts: object) -> None:
        """For whoever is to look after it now."""
        self._say(logging.ERROR, event, facts)

    def stranger(self, event: str, **facts: object) -> None:
        """A warning that anybody can cause from outside: not too often."""
        seldom = self._seldom.setdefault(event, _Seldom())
        if not seldom.may(monotonic()):
            return
        if seldom.passed_over:
            facts["passed_over"], seldom.passed_over = seldom.passed_over, 0
        self.warning(event, **facts)

    def own_up(self) -> None:
        """Say how much was passed over, where nothing came since with which it could be said."""
        now = monotonic()
        for event, seldom in self._seldom.items():
            if seldom.passed_over and seldom.is_over(now):
                self.warning(event, passed_over=seldom.passed_over)
                seldom.passed_over = 0


class _Seldom:
    """How often something was said, and not said, in a minute."""

    __slots__ = ("began", "passed_over", "said")

    def __init__(self) -> None:
        self.began = -SAME_WITHIN
        self.said = 0
        self.passed_over = 0

    def is_over(self, now: float) -> bool:
        return now - self.began >= SAME_WITHIN

    def may(self, now: float) -> bool:
        if self.is_over(now):
            self.began, self.said = now, 0
        self.said += 1
        if self.said > SAME_MOST:
            self.passed_over += 1
            return False
        return True


# How it is written


def begin(logs: Logs) -> None:
    """Let this process log so, from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_json_formatter() if logs.format == "json" else _Text())
    logging.basicConfig(handlers=[handler], level=logs.level.upper(), force=True)
    # What asyncio says of itself is of interest to nobody who runs a broker.
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def _json_formatter() -> logging.Formatter:
    try:
        from structlog.processors import JSONRenderer
        from structlog.stdlib import ProcessorFormatter
    except ImportError as problem:
        wanted = f"text; json needs structlog: pip install 'driftline[open]' ({problem})"
        raise InvalidValue("logs.format", wanted, "json") from None
    return ProcessorFormatter(
        foreign_pre_chain=[_of_record, _without_line],
        processors=[ProcessorFormatter.remove_processors_meta, JSONRenderer(default=str)],
    )


class _Text(logging.Formatter):
    """One line for each, as people read it."""

    def format(self, record: logging.LogRecord) -> str:
        facts = _of_record(None, "", {"_record": record})
        at, level = facts.pop("time")[:19].replace("T", " "), facts.pop("level").upper()
        del facts["_record"], facts["logger"]
        told = facts.pop("exception", "")
        line = f"{at} {level:<7} {_words(facts)}"
        return f"{line}\n{told}" if told else line


def _of_record(logger: object, method: str, facts: MutableMapping[str, Any]) -> dict[str, Any]:
    """What a record says, whoever made it, without secrets: a processor of structlog."""
    record: logging.LogRecord = facts["_record"]
    said = record.msg
    own = said if isinstance(said, _Said) else _Said(record.getMessage(), {})
    found: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "event": own.event,
        "logger": record.name,
        **own.facts,
    }
    # structlog has taken it out of the record: otherwise it would be written once more, as it is.
    problem = facts.get("exc_info") or record.exc_info
    if problem:
        found["exception"] = logging.Formatter().formatException(problem)
    kept = {name: value for name, value in facts.items() if name.startswith("_")}
    return {**kept, **_censored(found)}


def _without_line(logger: object, method: str, facts: MutableMapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != LINE}


def _censored(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _SECRET if name in _SECRET_NAMES and value else _clean(value)
        for name, value in facts.items()
    }


def _clean(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_clean(one) for one in value]
    if isinstance(value, Mapping):
        return _censored({str(name): one for name, one in value.items()})
    text = without_secrets(str(value))
    return text if len(text) <= _LONGEST or "\n" in text else f"{text[:_LONGEST]}…"


def _words(facts: Mapping[str, Any]) -> str:
    """An event and its facts on one line."""
    if LINE in facts:
        return _one_line(facts[LINE])
    whose = f"{facts['broker']}: " if facts.get("broker") else ""
    rest = (f"{name}={_word(one)}" for name, one in facts.items() if name not in _FIRST)
    return " ".join((_one_line(f"{whose}{facts['event']}"), *rest))


def _word(value: object) -> str:
    text = _one_line(str(value))
    return f'"{text}"' if " " in text else text


def _one_line(text: str) -> str:
    """What comes from elsewhere must not look like a line of its own."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
