"""WHAT IS SAID: values, events, conditions, subscriptions, and the relations between them.

Pure: no clock, no I/O, no SQL parser. Nearly everything is a value with structural equality; what
has state (`SequenceMatcher`, `Table`, `LiveRows`) is the slow and obvious reference for its kind.
`Subscription.truth` is the definition that every faster path is compared with.

Reading order: value, event, truth, scope, comparison, functions, text, expression, like, predicate,
variables, constraint, filter, subscription, view, pattern, advertisement, domain, covering,
standing, table, rows, explanation, notification.
"""
