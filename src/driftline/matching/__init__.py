"""WHICH SUBSCRIPTIONS DOES THIS EVENT SATISFY?

`scan` tries each one and is the reference. `hashed`, the default, tries only those of which the
type, one equality and one range fit. `poset` walks the covering relation from the widest filters
down. All give the same answer; which is fastest depends on how much subscriptions name and how much
they overlap.
"""
