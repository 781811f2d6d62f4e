"""THE SAME MEANING IN BULK: what is told of very many events, on Spark?

    recorded sequence ──source──▶ pieces ──matched──────▶ pieces ──out──▶ files, manifest
                                        └──reformulate──▶

What an event, a subscription and a notification are is said in `driftline.model`, and the workers
call that very code, by way of `driftline.recorded`: nothing is translated into Spark's own
expressions, whose NULL, NaN and mixed-type rules are not ours. Spark decides where and when.

Reading order:

1. `pieces` – in what form rows travel
2. `source` – the recorded sequence as a source of Spark, and its sink
3. `matched`, `reformulate` – plain filters by numbers; what has memory, shard by shard
4. `manifest`, `out` – output that is written once, whatever fails and is repeated
5. `identity`, `running` – whose directory it is; the queries started, watched and ended in order
6. `status`, `compare` – how far it is, and whether it is right, without Spark
7. `metrics` – what Prometheus is told
8. `schemas`, `subscriptions`, `match` – plain filters as a stage of DataFrames, for other pipelines
9. `session` – a session for the command line, benchmarks and tests

This is the only package that imports PySpark.
"""
