"""MESSAGES REFORMULATED: whose result depends on the data becomes a filter like any other.

A filter can be decided by looking at one event. A subscription to a result (the least price in a
range, say) cannot: whether an event changes it depends on everything said before. Here that state
is kept once, where the data is, and each change of the data is said anew as messages that carry
what a subscriber needs to know: the new result, and whom it concerns. Those travel and are matched
like any other event, so brokers know nothing of tables, and the keeper nothing of subscribers.

range_min   the least (or largest) y of the tuples whose x is in a range
"""
