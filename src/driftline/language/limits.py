"""How large may a text be?

The limits are checked on characters and tokens, before any parser sees them: a recursive parser
given ten thousand parentheses would exhaust Python's stack.
"""

from __future__ import annotations

LENGTH_MAX = 65_536
"""Characters in a text: room for some thousand IN values."""

TOKENS_MAX = 16_384
"""Tokens in a text: what the longest sensible text has, and parses in well under a second."""

NESTING_MAX = 40
"""Parentheses, CASEs and prefix operators inside one another. The SQL parser spends some twelve
stack frames on each, and Python allows about a thousand."""

DEPTH_MAX = 200
"""Levels of the tree that is read: `a + b + c + …` is as deep as it is long."""

STEPS_MAX = 16
"""Filters in one pattern."""
