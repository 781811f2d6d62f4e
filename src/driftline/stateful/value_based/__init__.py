"""Value-based conditions: who is told that a value moved far enough since they were told last?

**Problem.** `moved(price, by => 2)`, for a great many subscriptions to one item. Each has its own
state, the value it was told last, and no order of radii helps: a move may concern radius 4, and
neither 2 nor 6. **Idea.** Those with similar radii are mostly told together, and those with one
radius stand in a circle that no event changes. So who is told is said in few ranges of static
properties: radii, and arcs of a circle. **Cost.** O(log n) a range, whatever the number of those
told; O(1) an event where all have one radius.

B. Chandramouli, J. M. Phillips, J. Yang: Value-Based Notification Conditions in Large-Scale
Publish/Subscribe Systems, VLDB 2007. Cited as [VALUE].

Read `rule` (when one is told), `span` (how it is said who), `structure` (what a structure can do),
`reference` (the definition); then ours: `end_points` (different radii), `classes` (one radius),
`combined` (any), which share `packed`, with `circle` (what a table of them must look like), `audit`
and `choice` (which when); the paper's: `btree_lr`, `scan_r`, `ba_tree`, `btree_c`, `bw_tree`,
`b2_tree`, which share `plain`; and what rides on them: `conditions`, `ticks` (money), `fold` (one
subscription), `may_must` (two radii), `items` (many items with few subscribers), with `few` and
`numbered` (what an item is kept as). Then how it travels: `address` (who is told, to a network, and
how one asks for it), `group` and `reformulate` (a table's home), `subscription`, `states`,
`explained` and `follower` (the subscriber's edge); `two_level` has the paper's servers apart.
Where a great many follow one item as arrays: `members`, `crowd`, `boxes` and `addressed`.

We differ: end points are absolute, where the paper adds up moves, so floats give what the
definition gives; a queue of classes stands in place of the BW-tree; labels are numbers modulo 2^64,
so an arc is two of them, and they move by shifts that a short message says. Lemma 1 needs centres
that are near each other, not only near the value, so no centre is taken on trust, and a radius that
is changed may begin a second circle.
"""
