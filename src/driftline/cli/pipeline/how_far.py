"""`driftline pipeline status`: how far is it?"""

from __future__ import annotations

from dataclasses import asdict

from driftline.cli.check import JsonFlag
from driftline.cli.output import print_facts, print_json, print_table
from driftline.cli.pipeline.chosen import HERE, ConfigArgument, chosen
from driftline.spark.letters import LETTERS
from driftline.spark.status import Status, status_of


def status(config: ConfigArgument = HERE, json: JsonFlag = False) -> None:
    """Say what is recorded, how far each query is, what was told and what is kept.

    No Spark is started; it may run meanwhile.
    """
    found = status_of(chosen(config))
    if json:
        print_json(asdict(found))
        return
    print_facts(_facts(found))
    print_table(
        "Queries",
        ("query", "done", "behind", "batches", "notifications", "last commit"),
        [
            (
                name,
                f"{one.done:,}",
                f"{one.lag:,}",
                f"{one.batches:,}",
                f"{one.notifications:,}",
                f"{one.committed:%Y-%m-%d %H:%M:%S}",
            )
            for name, one in found.queries.items()
        ],
    )


def _facts(found: Status) -> dict[str, object]:
    files = ", ".join(
        f"{count:,} files of {what} ({found.rows[what]:,} rows)"
        for what, count in found.files.items()
        if count
    )
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.subscriptions.items())
    return {
        "runs now": "yes" if found.running else "no",
        "recorded": f"{found.recorded:,} numbers: {files}",
        "last recorded": found.last_recorded and f"{found.last_recorded:%Y-%m-%d %H:%M:%S}",
        "subscriptions": kinds or "none",
        "matched": f"{found.tables['matched']:,} events",
        "told": f"{found.tables['told']:,} rows",
        "refused": f"{found.tables['refused']:,} rows",
        "notifications": f"{found.notifications:,}",
        "shards": found.shards,
        "snapshots": f"{found.snapshots:,} files, {found.snapshot_bytes:,} bytes",
        "remains": f"{found.remains:,} files of failed attempts, or being written",
        **_brokers(found),
    }


def _brokers(found: Status) -> dict[str, object]:
    said: dict[str, object] = {}
    come, go = found.arrived, found.published
    if come is not None:
        said["from broker"] = (
            f"{come.events:,} events of {come.subscription} at {come.broker}, up to number"
            f" {come.number}; {come.repeated:,} had come before"
        )
        said["missing"] = "nothing"
        if come.gaps:
            said["missing"] = (
                f"something, {come.gaps:,} times; last {come.last_gap:%Y-%m-%d %H:%M:%S}"
            )
    if go is not None:
        said["to broker"] = f"{go.notifications:,} notifications at {go.address}, {go.lag:,} behind"
        if go.refused:
            said["refused there"] = f"{go.refused:,} notifications, set aside in {LETTERS}"
    return said
