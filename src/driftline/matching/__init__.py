"""WHICH SUBSCRIPTIONS DOES THIS EVENT SATISFY?

`scan` tries each one and is the reference; `hashed` tries only those whose type and one equality
fit, and must give the same answer.
"""
