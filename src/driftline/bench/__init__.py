"""THE BENCHMARKS behind `driftline bench NAME`: one file per question.

Each module has `run(full, say) -> Report`; those in `SIZED` can also be told the sizes
and more. A benchmark asserts its answers before it reports a time, runs what a user
would pick instead in the same run, and trusts CPU time and ratios more than the wall clock. Default
sizes finish within minutes; `--full` runs everything.
"""

from __future__ import annotations

BENCHMARKS = {
    "language": "How long do import, parse and one match take, and what does hostile text cost?",
    "matching": "Which of a million filters does an event satisfy, how fast, and at what cost?",
    "covering": "How long does it take to find the place of a filter among those that cover it?",
    "parametric": "What does a subscription that moves cost, and what if it is made anew instead?",
    "evolving": "What does it cost to find subscriptions that move with time and the environment?",
    "views": "What does it cost to keep the least of a range right, for a million ranges?",
    "value-based": "Who is told that a value moved, how fast, and in how few ranges of radii?",
    "pipeline": "How fast is a pipeline on Spark, beside Spark alone, and how late is news?",
    "broker": "How fast does a broker on sockets tell whom it concerns, beside a real NATS server?",
    "overlay": "What does it cost a network of brokers to learn who wants what, and to bring it?",
}
"""Every benchmark by name, with its question; the module has the same name."""

SIZED = {
    "broker": ("--secure",),
    "matching": ("--n", "--workload", "--batch", "--churn"),
    "views": ("--n", "--subscriptions"),
    "overlay": ("--brokers", "--subscriptions", "--events", "--topology"),
}
"""The options of the benchmarks whose sizes and workloads can be chosen."""
