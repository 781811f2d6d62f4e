"""COUNT, SUM and AVG of the rows that satisfy a condition, kept up to date; MIN and MAX too.

**Problem.** A change of one row changes a sum, and a view is told exactly when it does. **Idea.**
A sum needs no rows: what the row was is taken off, what it is is added. Both are in the message
that `rows` makes of the change, so the subscriber's edge keeps a few numbers, and the network
forwards what satisfies or did satisfy the condition. **Cost.** A change costs a constant for each
selected column, and nearly every one in range is told, so nothing is sent in vain [DBNET §4].

B. Chandramouli, J. Xie, J. Yang: On the Database/Network Interface in Large-Scale
Publish/Subscribe Systems, SIGMOD 2006. Cited as [DBNET].

Read `reference` (what the aggregates mean), `tally` (a sum that can be undone), `extremes` (MIN and
MAX of what comes and goes, by `ordered`), `totals` (all of a view's numbers), `fold` (what is
told).

**Sums are exact.** A float that was added and taken off again leaves what was there before, to the
last bit, and the order of changes does not matter. Adding floats with a correction (Kahan,
Neumaier) promises neither: taking off a large number does not bring back the bits it pushed out.
So sums are whole numbers of a unit, which is 1, a power of two as small as the floats need, or the
column's tick, and are rounded once, when they are read. It costs a microsecond.

We differ: MIN and MAX are here as well, for a condition that is not one range beside equalities
(`range_min` takes those). The paper leaves ranges of two dimensions for later; here the edge keeps
the values of its own rows, which is exact and costs memory per row in range, and traffic for
changes that do not move the minimum. AVG is the exact sum over the count, rounded once.
"""
