"""SELECT DISTINCT: which values are there among the rows that satisfy a condition?

**Problem.** A row that comes says nothing new if another has its value, and one that goes takes a
value away only if it was the last. **Idea.** Count the rows of each value: the first makes it
enter, the last makes it leave. Both are seen from the row's change (`rows`) and the counts.
**Cost.** A change costs O(1); the edge keeps a count for each value.

B. Chandramouli, J. Xie, J. Yang: On the Database/Network Interface in Large-Scale
Publish/Subscribe Systems, SIGMOD 2006. Cited as [DBNET].

Read `reference`, then `fold`.

We differ: for one range the paper sends a row's coming or going only to the subscriptions whose
range holds no other row of that value (an extended Mar, §4), and so spares duplicates; here they
travel, and any condition and any number of columns will do. A change that takes one value away and
brings another is one notification, a `change`, since there is at most one for each event.
"""
