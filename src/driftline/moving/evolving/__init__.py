"""Evolving subscriptions: a bound that follows time and the environment.

**Problem.** An interest that moves by a rule its subscriber knows (a player walks, visibility
drops, a price decays) is told anew again and again. **Idea.** The subscription says the rule, over
variables that every broker can read: the time since it began, the time of day, the environment. It
is told once. **Cost.** Somebody must evaluate the rule: at every event (lazy), at every tick
(versioned), or at most once in a while (cached).

C. Cañas, K. Zhang, B. Kemme, J. Kienzle, H.-A. Jacobsen: Self-Evolving Subscriptions for
Content-Based Publish/Subscribe Systems. Cited as [EVOLVE].

Read `started` (what travels), `plan` (the parts of a filter), `family` (rows of one shape), `ways`
with `lazy`, `cached`, `versioned` and `adaptive`, `matcher` (all of it), `as_of` (the paper's own
interval semantics), `crossing` (when will a bound reach a value?).

We differ: all ways give the answer of the definition at the event's own instant, because versions
are wide enough for as long as they are kept and what they find is looked at again. They differ in
cost alone, so one may be taken for another while the system runs.
"""
