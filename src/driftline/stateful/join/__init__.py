"""SELECT over two tables: which pairs of rows satisfy a condition?

**Problem.** What a change of a row means to a join depends on the rows of the other table, which
are in no message. **Idea.** The home of both tables joins the changed row with the rows of the
other that have its join key, and sends one message for each pair: the result tuple before and
after, as `rows` does for a row. The subscription becomes a condition over such messages, and the
whole condition, of either table or across, is judged where any filter is. **Cost.** As many
messages as partners, each found by a hash; the subscriber's edge keeps the pairs it told of.

B. Chandramouli, J. Xie, J. Yang: On the Database/Network Interface in Large-Scale
Publish/Subscribe Systems, SIGMOD 2006. Cited as [DBNET]; this is §4.

Read `reference` (nested loops), `subscription` (what a view asks of which pairs), `reformulate`
(a change of a row as changes of pairs).

**One message for each pair**, not one for all. A stateless filter sees flat attributes: it could
not ask whether *some* partner in a list satisfies a condition. So a subscriber gets the pairs it
asked for and no others, at most one notification for each result tuple and change. Views that
join by the same columns share their messages, whatever else they ask.

We differ: the paper sends the tuples that come and those that go. Here a message has both sides, so
that an update of a row is one `change` of each pair, not a leave and an enter.
"""
