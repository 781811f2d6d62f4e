"""MESSAGES REFORMULATED: subscriptions with state, carried by a network that has none.

A reformulator is three functions: a change of a table becomes messages (at the table's home), a
subscription becomes a stateless filter over those messages (in the network), and a message is
folded into what the subscriber knows (at its edge), which may be something to tell.

Read `rows` (a row's change as one message), then what rides on it: `range_sum` (COUNT, SUM, AVG,
and MIN and MAX over any condition), `distinct`, `join`. `news` is what folds tell, `cells` how
values lie in what they dump.
"""
