"""WHAT IS SAID: values, events, conditions, subscriptions, and the relations between them.

Everything here is a value with structural equality, and pure: no clock, no I/O, no SQL parser.
`Subscription.matches` is the definition that every faster path is compared with.

Reading order: value, event, truth, scope, functions, expression, like, predicate, variables,
constraint, filter, subscription, view, pattern, advertisement, domain, covering, standing,
explanation, notification.
"""
