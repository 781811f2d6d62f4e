"""Subscriptions that move: their bounds follow a subscriber's variable, time or the environment.

What the network is told of them are filters that stand still for a while (`hull`); the last
evaluation, with everything as it is at that moment, happens where the subscriber is.
"""
