"""THE SAME MEANING IN BULK: which subscriptions does each of many events satisfy, on Spark?

    files ──sources──▶ events ──match──▶ events with their subscriptions ──sinks──▶ files, manifest
            schemas            events, subscriptions                         manifest

Every stage is a function of DataFrames, joined with `.transform`; none creates a session, and none
runs a job before its result is asked for. What an event, a subscription and a match are is said in
`driftline.model`, and the workers call that very code: nothing is translated into Spark's own
expressions, whose NULL, NaN and mixed-type rules are not ours.

Reading order:

1. `schemas` – what columns events have, and what matching adds to them
2. `events` – how an Arrow batch becomes events, exactly, row by row, with the problems of the rest
3. `subscriptions` – how subscriptions are loaded, checked, sent to the workers and kept there
4. `match` – the stage itself
5. `sources` – directories of Parquet or JSON lines, read at once or followed
6. `manifest`, `sinks` – output that is written once, whatever fails and is repeated
7. `pipeline` – the stages joined, run, watched and summed up
8. `session` – a local session for the command line, benchmarks and tests

This is the only package that imports PySpark.
"""
