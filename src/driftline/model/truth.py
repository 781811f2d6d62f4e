"""What is neither true nor false, and why?

The language has Kleene's three truths. Evaluation answers with a value or with an `Unknown` that
says what was wanting; a subscription matches only on true.
"""

from __future__ import annotations

from typing import TypeAlias

from driftline.model.value import Value


class Unknown:
    """No answer, and the reason: `subject` is what has no value, `reason` is why.

    >>> print(Unknown("price", "is missing"))
    price is missing
    """

    __slots__ = ("reason", "subject")

    def __init__(self, subject: object, reason: str) -> None:
        # The subject is kept as it is and written out only if someone asks: most unknowns on the
        # hot path are looked at by nobody.
        self.subject = subject
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.subject} {self.reason}"

    def __repr__(self) -> str:
        return f"Unknown({str(self)!r})"

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Unknown) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


Outcome: TypeAlias = Value | Unknown
