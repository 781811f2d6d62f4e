"""Every exception Driftline raises on purpose, in one tree.

    DriftlineError
    ├── LanguageError           a text was refused: what was wanted, what came, where
    │   └── LimitExceeded       … because it is longer, deeper or larger than allowed
    ├── InvalidValue            a value that no event, parameter or row may carry
    ├── ParameterError          parameters missing, extra or ill-typed; nothing changed
    ├── TableError              a row, key or table declaration that cannot be honoured
    ├── NotAdvertised           a publisher said something it had not advertised
    ├── ReasonLeftOff           an event was refused, behind so many others that it is not said why
    ├── NotSupported            understood, but not executed by this part of Driftline
    ├── SubscriptionEnded       an operation on a cancelled subscription
    ├── FileRefused             a file of events or subscriptions that cannot be read
    ├── FrameRefused            bytes from the network that are no frame, message or events
    ├── NotAuthenticated        somebody did not prove who they are
    ├── NotAllowed              a party may not do this
    ├── LimitReached            a party has as much of something as it may have
    ├── CannotListen            an address is in use, or is none of this machine's
    ├── BrokerFailed            a broker that was to be started ended before it was ready
    ├── Unreachable             a broker does not answer, or has gone; what may have become of it
    ├── NotEffective            a change counts here, and brokers that are named did not answer
    ├── JournalError            what a broker keeps cannot be read or written
    │   ├── JournalInUse        … because another process has it open
    │   ├── JournalRefused      … because it is not this broker's, or of a newer format
    │   ├── JournalDamaged      … because it is not what was written
    │   └── JournalUnavailable  … now: nothing of it was kept, and it may be tried again
    │       └── JournalFull     … when there is room again
    └── PipelineFailed          a Spark job did not start or did not finish, and why

Each error keeps its facts as attributes and passes them to ``Exception.__init__`` in the order
of its own parameters, which is what lets it survive pickling between Spark workers.
"""

from __future__ import annotations


class DriftlineError(Exception):
    """The base of every error raised by Driftline."""


class LanguageError(DriftlineError):
    """A text was refused; nothing of it was guessed or ignored.

    >>> print(LanguageError("a SELECT", "DROP", 1, 1))
    wanted a SELECT, came DROP (line 1, column 1)
    """

    def __init__(
        self, wanted: str, came: str, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(wanted, came, line, column)
        self.wanted = wanted
        self.came = came
        self.line = line
        self.column = column

    def __str__(self) -> str:
        where = "" if self.line is None else f" (line {self.line}, column {self.column})"
        return f"wanted {self.wanted}, came {self.came}{where}"


class LimitExceeded(LanguageError):
    """A text is longer, deeper or larger than the language allows."""


class InvalidValue(DriftlineError):
    """A value that cannot be carried: wrong type, out of range, or not well formed."""

    def __init__(self, where: str, wanted: str, came: str) -> None:
        super().__init__(where, wanted, came)
        self.where = where
        self.wanted = wanted
        self.came = came

    def __str__(self) -> str:
        return f"{self.where}: wanted {self.wanted}, came {self.came}"


class ParameterError(DriftlineError):
    """Parameters are set as a whole: one bad name refuses the change, and nothing changes.

    >>> print(ParameterError(("hi",), ("high",), ()))
    parameters refused, nothing changed: missing :hi; not in the subscription :high
    """

    def __init__(
        self, missing: tuple[str, ...], extra: tuple[str, ...], ill_typed: tuple[str, ...]
    ) -> None:
        super().__init__(missing, extra, ill_typed)
        self.missing = missing
        self.extra = extra
        self.ill_typed = ill_typed

    def __str__(self) -> str:
        parts = []
        if self.missing:
            parts.append("missing " + ", ".join(f":{name}" for name in self.missing))
        if self.extra:
            parts.append("not in the subscription " + ", ".join(f":{name}" for name in self.extra))
        parts.extend(self.ill_typed)
        return "parameters refused, nothing changed: " + "; ".join(parts)


class TableError(DriftlineError):
    """A table, row or key that cannot be honoured; the table is unchanged."""

    def __init__(self, table: str, problem: str) -> None:
        super().__init__(table, problem)
        self.table = table
        self.problem = problem

    def __str__(self) -> str:
        return f"table {self.table}: {self.problem}"


class NotAdvertised(DriftlineError):
    """Under advertisement-based semantics a publisher must advertise what it publishes."""

    def __init__(self, party: str, event_type: str, problem: str) -> None:
        super().__init__(party, event_type, problem)
        self.party = party
        self.event_type = event_type
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.party!r} published a {self.event_type} it had not advertised: {self.problem}"


class ReasonLeftOff(DriftlineError):
    """An event was refused, among so many that only the reasons of the first are told.

    >>> print(ReasonLeftOff("NotAllowed"))
    refused (NotAllowed): of so many only the first are told why
    """

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error

    def __str__(self) -> str:
        return f"refused ({self.error}): of so many only the first are told why"


class NotSupported(DriftlineError):
    """The text is in the language, but this part of Driftline does not execute it."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what = what
        self.why = why

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


class SubscriptionEnded(DriftlineError):
    """The subscription was cancelled before this call."""

    def __init__(self, subscription: str) -> None:
        super().__init__(subscription)
        self.subscription = subscription

    def __str__(self) -> str:
        return f"subscription {self.subscription} was cancelled"


class FileRefused(DriftlineError):
    """A file of events or subscriptions that cannot be read, with the place of the problem."""

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        super().__init__(path, line, problem)
        self.path = path
        self.line = line
        self.problem = problem

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{where}: {self.problem}"


class FrameRefused(DriftlineError):
    """Bytes that came over a link and cannot be read; nothing of them was guessed or ignored.

    >>> print(FrameRefused("frame at byte 0", "version 1", "version 7"))
    frame at byte 0: wanted version 1, came version 7
    """

    def __init__(self, where: str, wanted: str, came: str) -> None:
        super().__init__(where, wanted, came)
        self.where = where
        self.wanted = wanted
        self.came = came

    def __str__(self) -> str:
        return f"{self.where}: wanted {self.wanted}, came {self.came}"


class NotAuthenticated(DriftlineError):
    """Somebody did not prove who they are: without a token, or with one that does not count."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"who you are was not proven: {self.why}"


class NotAllowed(DriftlineError):
    """A party asked for something that it may not do."""

    def __init__(self, party: str, what: str) -> None:
        super().__init__(party, what)
        self.party = party
        self.what = what

    def __str__(self) -> str:
        return f"{self.party} may not {self.what}"


class LimitReached(DriftlineError):
    """A party has as much of something as it may have; nothing changed."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(what, limit)
        self.what = what
        self.limit = limit

    def __str__(self) -> str:
        return f"at most {self.limit} {self.what}"


class CannotListen(DriftlineError):
    """A broker cannot be reached at this address: another has it, or the machine has it not."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(address, why)
        self.address = address
        self.why = why

    def __str__(self) -> str:
        return f"cannot listen on {self.address}: {self.why}"


class BrokerFailed(DriftlineError):
    """A broker of an overlay ended before it was ready; its last words say why."""

    def __init__(self, broker: str, why: str) -> None:
        super().__init__(broker, why)
        self.broker = broker
        self.why = why

    def __str__(self) -> str:
        return f"broker {self.broker} did not start: {self.why}"


class Unreachable(DriftlineError):
    """A broker does not answer, or the connection to it has ended.

    What was asked for meanwhile may or may not have happened.
    """

    def __init__(self, address: str, why: str) -> None:
        super().__init__(address, why)
        self.address = address
        self.why = why

    def __str__(self) -> str:
        return f"{self.address}: {self.why}"


class NotEffective(DriftlineError):
    """A change counts at its broker, but some others have not said in time that they know of it.

    It takes effect there when they are reached; nothing need be asked again.
    """

    def __init__(self, what: str, silent: tuple[str, ...]) -> None:
        super().__init__(what, silent)
        self.what = what
        self.silent = silent

    def __str__(self) -> str:
        return f"{self.what}: no answer from {', '.join(self.silent)}"


class JournalError(DriftlineError):
    """What a broker keeps cannot be read or written; `where` is the path or address of it."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        return f"journal {self.where}: {self.problem}"


class JournalInUse(JournalError):
    """Another process has the journal open; two would undo what each other keeps."""


class JournalRefused(JournalError):
    """The journal is another broker's, or of a format that this version does not know."""


class JournalDamaged(JournalError):
    """The journal does not hold what was written; nothing of it was guessed."""


class JournalUnavailable(JournalError):
    """Nothing of what was to be kept was; the same may be tried again later."""


class JournalFull(JournalUnavailable):
    """There is no room for what is to be kept. What was kept before is unharmed."""


class PipelineFailed(DriftlineError):
    """A Spark job did not start or did not finish; what it committed before stands."""

    def __init__(self, doing: str, problem: str) -> None:
        super().__init__(doing, problem)
        self.doing = doing
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.doing} failed: {self.problem}"
