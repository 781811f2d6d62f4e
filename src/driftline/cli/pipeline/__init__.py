"""`driftline pipeline`: what is a pipeline, run it, look at it, and take it again."""

from __future__ import annotations

import typer

from driftline.cli.pipeline.again import replay
from driftline.cli.pipeline.begin import init
from driftline.cli.pipeline.how_far import status
from driftline.cli.pipeline.running import run
from driftline.cli.pipeline.where import explain

app = typer.Typer(
    help="Events and changes in bulk on Spark: the engine's answers, at any size.",
    no_args_is_help=True,
)
app.command("init")(init)
app.command("run")(run)
app.command("status")(status)
app.command("explain")(explain)
app.command("replay")(replay)
