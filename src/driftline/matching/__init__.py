"""WHICH FILTERS DOES THIS EVENT SATISFY?

A matcher (`matcher`) holds filters by id; a bound that moves is a parameter of its filter. Events
come one by one or as `columns`.

- `scan` tries each filter, and is the reference.
- `index` is compiled, and finds what fits without looking at the rest.
- `poset` walks the covering relation from the widest filters down (`relations`, `nesting`, `box`).
- `choice` makes one by its name, and says which is for what.
- `lazy` puts standing subscriptions on any of them, those included that evolve.

All give the same answers; `testing.checks` compares them.
"""
