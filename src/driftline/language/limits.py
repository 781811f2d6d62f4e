"""How large may a text be?

Length, tokens and nesting are checked before any parser sees the text: a recursive parser given ten
thousand parentheses would exhaust Python's stack. The depth of the tree is checked as it is read.
"""

from __future__ import annotations

LENGTH_MAX = 65_536
"""Characters in a text: room for some thousand IN values."""

TOKENS_MAX = 16_384
"""Tokens in a text: what the longest sensible text has, and parses in well under a second."""

NESTING_MAX = 40
"""Parentheses, CASEs and prefix operators inside one another: the SQL parser spends many stack
frames on each, and Python allows about a thousand."""

DEPTH_MAX = 200
"""Levels of the tree that is read: `a + b + c + …` is as deep as it is long."""

STEPS_MAX = 16
"""Filters in one pattern."""

FILTERS_MAX = 4_096
"""Filters of the CloudEvents Subscriptions API for one subscription: the text of more would hardly
be short enough. An attribute with its string counts as one."""
