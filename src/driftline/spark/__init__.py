"""THE SAME MEANING IN BULK: which subscriptions does each of many events satisfy, on Spark?

    files ──sources──▶ events ──match──▶ events with their subscriptions ──sinks──▶ files, manifest
            schemas            subscriptions                                 manifest

Every stage is a function of DataFrames, joined with `.transform`; none creates a session, and none
runs a job before its result is asked for. What an event, a subscription and a match are is said in
`driftline.model`, and the workers call that very code: nothing is translated into Spark's own
expressions, whose NULL, NaN and mixed-type rules are not ours.

Reading order:

1. `schemas` – what columns events have (as `driftline.language.columns` says), and what is added
2. `subscriptions` – how subscriptions are loaded, checked, sent to the workers and kept there
3. `match` – the stage itself
4. `sources` – directories of Parquet or JSON lines, read at once or followed
5. `manifest`, `sinks` – output that is written once, whatever fails and is repeated
6. `pipeline` – the stages joined, run, watched and summed up
7. `session` – a local session for the command line, benchmarks and tests

This is the only package that imports PySpark.
"""
