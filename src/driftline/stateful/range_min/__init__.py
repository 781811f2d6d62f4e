"""Range-min: who is told that the least y in a range of x has changed, and what it is now?

**Problem.** `SELECT min(y) FROM t WHERE x BETWEEN :l AND :r`, for a great many ranges. Telling
every change of a tuple to every range around it is far too much; keeping the result of each range
means touching thousands of them for one change. **Idea.** All ranges that get the same new minimum
form a rectangle in the plane of their ends, bounded by tuples near the one that changed. So a
change becomes a few messages `<NEW_MIN, INNER_L, INNER_R, OUTER_L, OUTER_R>`, and the range [l, r]
a plain filter on those. **Cost.** O(log n) a message, whatever the number of subscriptions.

B. Chandramouli, J. Xie, J. Yang: On the Database/Network Interface in Large-Scale
Publish/Subscribe Systems, SIGMOD 2006 and its technical report. Cited as [DBNET].

Read `change` (a message), `reference` (the definition), `marginals` (Mar, Hull and EMar as in the
paper), `rule` (one rule for all kinds of change), `structure` (what a structure can do), `a2b_tree`
(the paper's), `blocks` (the fast one, compiled), `maxima` (the largest instead of the least),
`subscription` (a view as a filter over messages), `affected` (whom a message affects, for unicast).

We differ: one rule covers inserts, deletes and updates of either or both attributes, without
telling good from bad updates; it tells nobody twice, where a delete and an insert would. Only
points below the peak are in a hull. A result that becomes NULL is told too. Several tuples may have
the same x, or the same point: what counts is the least y at each x. See `marginals`, `a2b_tree`.
"""
