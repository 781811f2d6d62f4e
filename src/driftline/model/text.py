"""How is a piece of the model written as canonical SQL?

The canonical form is a contract: `parse(str(s)) == s`. Identifiers are case-sensitive and quoted
only where SQL would misread them.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from driftline.model.value import Value

_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})\Z"
)
_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# Words that the SQL parser would not read as a plain column or table name. A test tries every
# keyword the parser knows, so a word that is missing here is found there.
_RESERVED = frozenset(
    """
    ALL ALTER AND ANTI ANY ARRAY AS ASC ASOF BETWEEN BY CASE CONNECT_BY_ROOT CREATE CROSS
    CURRENT_DATE CURRENT_DATETIME CURRENT_ROLE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DELETE
    DESC DESCRIBE DISTINCT DROP ELSE END EXCEPT EXISTS FALSE FETCH FINAL FOR FROM FULL GLOB
    GRANT GROUP HAVING IF ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS ISNULL JOIN LATERAL LEFT
    LIKE LIMIT LIST MAP NATURAL NOT NOTNULL NULL NULLABLE OBJECT OFFSET ON OR ORDER OUTER
    PARTITIONED_BY QUALIFY RANGE REGEXP RETURNING REVOKE RIGHT RLIKE ROLLBACK SELECT SEMI
    STRAIGHT_JOIN STRUCT TABLE TABLESAMPLE THEN TRUE UNCACHE UNION UPDATE USING VALUES WHEN
    WHERE WINDOW WITH WITHIN XOR
    """.split()
)


def identifier(name: str) -> str:
    """A name as SQL reads it back, quoted where needed.

    >>> identifier("price"), identifier("order"), identifier("a b")
    ('price', '"order"', '"a b"')
    """
    if _SIMPLE.match(name) and name.upper() not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def literal(value: Value | None) -> str:
    r"""A value as SQL reads it back.

    >>> literal("it's"), literal(1.0), literal(b"\x01"), literal(None)
    ("'it''s'", '1.0', "X'01'", 'NULL')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{timestamp(value)}'"
    return repr(value)


def read_timestamp(text: str) -> datetime:
    """The time a text spells in RFC 3339, with its zone and no digit that would be lost.

    Otherwise a ValueError that says what was wanted.

    >>> read_timestamp("2026-01-31T09:30:00+01:00").isoformat()
    '2026-01-31T08:30:00+00:00'
    >>> read_timestamp("2026-01-31T09:30:00")
    Traceback (most recent call last):
    ValueError: a time with a zone, such as 2026-01-31T09:30:00Z
    """
    if not _TIMESTAMP.match(text):
        raise ValueError("a time with a zone, such as 2026-01-31T09:30:00Z")
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("a time that exists") from None
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError("a time between the years 1 and 9999") from None


def timestamp(value: datetime) -> str:
    """A time in RFC 3339, in UTC, with as many digits as it needs."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
