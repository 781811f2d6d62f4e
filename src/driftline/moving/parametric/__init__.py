"""Parametric subscriptions: a bound that follows a variable of the subscriber.

**Problem.** An interest that changes often is unsubscribed and subscribed again, which is work for
every broker, and events are missed or told twice in between. **Idea.** The subscription stays and
its variable moves: one small message (an *update*) goes where the subscription went, and only as
far as it makes a difference. A broker sees the variables of its neighbours only, never the
subscriber's own (*broker variables*). **Cost.** An update finds its entry by a key; where what a
broker wants as a whole is not changed by it, it goes no further.

K. R. Jayaram, P. Eugster: parametric subscriptions in content-based publish/subscribe networks,
ACM Transactions on Computer Systems. Cited as [PARAM].

Read `slots` (broker variables), `updates` (what is said instead of unsubscribing and subscribing),
`monitor` (variables that move too often), `strict` (the last evaluation, at the subscriber),
`declare` (the class style of §4.2).

We differ: every constant of a filter is a variable to the neighbour it is told to, so that also the
next filter of the same shape is an update; and what is told besides (a filter uncovered, another
covered) is in the same message, so that nothing is missed in between.
"""
