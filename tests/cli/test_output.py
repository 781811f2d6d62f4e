"""Does what others write reach a terminal as they wrote it, and as nothing else?"""

from __future__ import annotations

import io
import os

import pytest
from rich.console import Console

from driftline.cli import output
from driftline.cli.main import main
from driftline.cli.output import escaped, plain, print_facts, print_json, print_table
from driftline.cli.subscribe import _print
from driftline.cli.top import _shown
from driftline.errors import FileRefused
from driftline.model.event import Event
from driftline.model.notification import Notification, NotificationKind

MARKUP = ["[red]x[/red]", "[/red]", "[bold", ":id:", "a:b:c :smile:", r"\[x]", "[link=http://e]c"]
ORDERS = ["\x1b[2J", "\x1b]0;title\x07", "a\rb", "a\x08b", "\x9b31m", "\u202eabc", "a\tb", "\x7f"]


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal is sent, which knows colours."""
    sent = io.StringIO()
    for one in (output.stdout, output.stderr):
        monkeypatch.setattr(one, "_file", sent)
        monkeypatch.setattr(one, "_width", 300)
        monkeypatch.setattr(one, "no_color", True)
    return sent


def is_quiet(text: str) -> bool:
    """Is there nothing in it that a terminal obeys, or that breaks a line?"""
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("said", MARKUP)
def test_markup_is_printed_as_it_is(terminal, said):
    output.stdout.print(said)
    output.stderr.print(plain(f"warning: {said}", "yellow"))
    print_table(said, ("text",), [(said,)])
    print_facts({"text": said})
    assert terminal.getvalue().count(said) == 5


@pytest.mark.parametrize("said", ORDERS)
def test_orders_to_a_terminal_are_shown_and_not_given(terminal, said):
    output.stdout.print(said)
    output.stderr.print(plain(f"warning: {said}"))
    print_table(said, ("text",), [(said,), (Exception(said),)])
    print_facts({"text": said})
    assert is_quiet(terminal.getvalue())
    assert terminal.getvalue().count(escaped(said)) == 6


def test_what_has_lines_keeps_them_and_a_cell_has_one(terminal):
    output.stdout.print("a\n  b")
    print_facts({"text": "a\nb"})
    print_table("", ("text",), [("a\nb",)])
    assert terminal.getvalue().startswith("a\n  b\ntext  a\\nb\n")
    assert "│ a\\nb │" in terminal.getvalue()


def test_letters_of_all_languages_are_no_orders():
    assert escaped("é ü 東京 👍 \\ [x]") == "é ü 東京 👍 \\ [x]"


def test_json_escapes_what_it_must(capsys):
    print_json({"text": "[/red] \x1b[2J :id:"})
    assert r'"[/red] \u001b[2J :id:"' in capsys.readouterr().out


def test_our_own_styles_are_seen(monkeypatch):
    sent = io.StringIO()
    console = type(output.stderr)(
        file=sent, force_terminal=True, color_system="standard", _environ={}
    )
    assert isinstance(console, Console)
    console.print(plain("[bold]x", "red"))
    assert sent.getvalue() == "\x1b[31m[bold]x\x1b[0m\n"


def test_a_line_of_what_is_told_is_one_line(capsys):
    event = Event("[/q]\x1b[2J", {"a\nb": "c\nd", ":id:": "[/red]"})
    told = Notification(NotificationKind.EVENT, event.attributes, 1, event=event)
    _print(told, json=False)
    said = capsys.readouterr().out
    assert said == "event     [/q]\\x1b[2J a\\nb='c\\nd' :id:='[/red]'\n"


def seen_by_top(said):
    """What there is to show, where all that others have named is called like this."""
    rates = ("published", "told", "bytes_in", "bytes_out")
    counts = ("guests", "subscriptions", "kept", "waiting_for_journal", "memory_bytes_most")
    link = {"broker": said, "up": False, "problem": said, "waiting": 0, "given_up": 0}
    link |= {"bytes_in_per_second": 0.0, "bytes_out_per_second": 0.0}
    broker = {"broker": said, "up": True, "operated": True, "trouble": said, "cpu_share": 0.5}
    broker |= {f"{one}_per_second": 0.0 for one in rates} | dict.fromkeys(counts, 0)
    broker["links"] = [link]
    mine = {"text": said, "durable": said, "epoch": 1, "params": {said: said}, "broker": said}
    mine |= dict.fromkeys(("evaluated", "matched", "suppressed", "sent", "waiting"), 0)
    return {
        "brokers": [
            broker,
            {**broker, "operated": False},
            {"up": False, "address": said, "problem": said},
        ],
        "slow": [{"client": said, "broker": said, "waiting_bytes": 1}],
        "subscriptions": [mine],
    }


@pytest.mark.parametrize("said", ["[/red]", "[bold]x", ":id:", "\x1b[2J", "a\nb"])
def test_top_shows_names_as_they_are(terminal, said):
    output.stdout.print(_shown(seen_by_top(said)))
    assert is_quiet(terminal.getvalue())
    assert terminal.getvalue().count(escaped(said)) == 15


@pytest.mark.parametrize("said", ["amsterdam", "a name that is longer than many", "ä" * 60])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_top_leaves_out_what_a_narrow_terminal_has_no_room_for(terminal, monkeypatch, width, said):
    monkeypatch.setattr(output.stdout, "_width", width)
    output.stdout.print(_shown(seen_by_top(said)))
    lines = terminal.getvalue().split("\n")
    tables = [one for one in lines if "does not answer" not in one and "may not operate" not in one]
    assert max(map(len, tables)) <= width
    headings = {
        "Brokers": "broker links journal published/s told/s",
        "Links": "broker to state events wait given up",
        "Your subscriptions": "subscription bounds sent waiting",
    }
    for title, names in headings.items():
        heading = lines[lines.index(title) + 2].split()
        assert [name for name in heading if name in names.split()] == names.split()
    assert ("kept" in lines[2]) == (width == 120)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileRefused("[/a].toml", None, "\x1b[2J\nforged"), r"[/a].toml: \x1b[2J\nforged"),
        (OSError("[/red]\nforged"), r"[/red]\nforged"),
    ],
)
def test_a_failure_is_one_line(monkeypatch, capsys, error, said):
    def fail() -> None:
        raise error

    monkeypatch.setattr("driftline.cli.main.app", fail)
    monkeypatch.setenv("NO_COLOR", "1")
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err == f"driftline: {said}{os.linesep}"


def test_warnings_about_names_are_one_line(driftline):
    ran = driftline("check", 'SELECT * WHERE "a\n\x1b[2Jb" = NULL')
    assert ran.code == 0
    assert is_quiet(ran.err)
    assert r"a\n\x1b[2Jb" in ran.err
    assert ran.err.count("\n") == len(ran.err.split("warning: ")) - 1
