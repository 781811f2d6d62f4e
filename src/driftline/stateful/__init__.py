"""MESSAGES REFORMULATED: subscriptions with state, carried by a network that has none.

A filter can be decided by looking at one event. A subscription to a result (the least price in a
range, say) cannot: whether an event changes it depends on everything said before. A reformulator is
three functions: a change of a table becomes messages (at the table's home, where the state is kept
once), a subscription becomes a stateless filter over those messages (in the network), and a message
is folded into what the subscriber knows (at its edge), which may be something to tell.

Read `range_min` (the least or largest y of the tuples whose x is in a range); `rows` (a row's
change as one message), then what rides on it: `range_sum` (COUNT, SUM, AVG, and MIN and MAX over
any condition), `distinct`, `join`; `value_based` (who is told that a value moved far enough).
`news` is what folds tell, `cells` how values lie in what they dump.
"""
