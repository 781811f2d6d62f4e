"""Where do secrets come from, and what of them is shown?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from driftline.errors import FileRefused, InvalidValue, JournalRefused
from driftline.net.config import config_of, read_config
from driftline.net.journal import open_journal
from driftline.net.logs import without_secrets
from driftline.net.secrets import has_password, is_misread, read_secret, without_password

WITH = [
    ("postgresql://bob:ge#heim@127.0.0.1:1/db", "postgresql://bob:***@127.0.0.1:1/db"),
    ("postgresql://bob:ge?heim@127.0.0.1:1/db", "postgresql://bob:***@127.0.0.1:1/db"),
    ("postgresql://bob:ge/heim@127.0.0.1:1/db", "postgresql://bob:***@127.0.0.1:1/db"),
    ("postgresql://bob:ge@heim@host/db", "postgresql://bob:***@host/db"),
    ("postgresql://bob:ge:heim@[::1]:5/db", "postgresql://bob:***@[::1]:5/db"),
    ("postgresql://:heim@host/db", "postgresql://:***@host/db"),
    ("postgres://bob:heim@one,two:5/db?user=bob", "postgres://bob:***@one,two:5/db?user=bob"),
    ("postgresql://host/db?password=ge#heim", "postgresql://host/db?password=***"),
    ("postgresql://host/db?password=ge@heim", "postgresql://host/db?password=***"),
    ("postgresql://host/db?user=b&pass%77ord=heim&port=5", None),
    ("postgresql://host/db?sslpassword=heim", "postgresql://host/db?sslpassword=***"),
    ("postgresql://host/db?scram_client_key=heim", None),
    ("postgresql://bob@host/db?password=heim", "postgresql://bob@host/db?password=***"),
    # The last @ is in the password.
    ("postgresql://host:5/db?password=ge@heim", "postgresql://***"),
    ("postgresql://bob:ge?password=a@b@heim", "postgresql://***"),
    ("host=h password=heim user=bob", "host=h password=***"),
    ("host=h PASSWORD = 'ge heim'", "host=h PASSWORD = ***"),
    # What almost is an address is no name of a file.
    ("postgresql:/bob:heim@host/db", "postgresql:***"),
    ("postgresql//bob:heim@host/db", "postgresql//***"),
    ("Postgres:bob:heim@host/db", "Postgres:***"),
]

WITHOUT = [
    "memory:",
    "a/b@c.journal",
    "sqlite:////var/lib/b@c.journal",
    "postgres/b.journal",
    "postgresql://host:5432/db",
    "postgresql://bob@host:5432/db",
    "postgresql:///db?host=/run/postgresql&user=bob",
    "postgresql://bob%40here@[::1]:5432/db?options=-csearch_path%3Da#b",
]


@pytest.mark.parametrize(("journal", "shown"), WITH)
def test_no_password_of_a_journal_is_shown(journal, shown):
    said = without_password(journal)
    assert "heim" not in said
    assert shown is None or said == shown
    assert without_password(said) == said


@pytest.mark.parametrize("journal", WITHOUT)
def test_an_address_without_a_password_is_shown_as_it_is(journal):
    assert without_password(journal) == journal
    assert not has_password(journal)


@pytest.mark.parametrize("journal", [one for one, _ in WITH])
def test_no_password_is_taken_from_a_file_or_a_command_line(tmp_path, journal):
    file = tmp_path / "broker.toml"
    file.write_text(f'journal = "{journal}"')
    with pytest.raises(FileRefused, match="no password") as refused:
        read_config(file, environment={})
    assert "heim" not in str(refused.value)
    with pytest.raises(InvalidValue, match="no password") as wrong:
        read_config(None, {"journal": journal}, {})
    assert "heim" not in str(wrong.value)


@pytest.mark.parametrize("journal", [one for one, _ in WITH if "://" in one])
def test_one_may_come_from_the_environment(journal):
    assert read_config(None, environment={"DRIFTLINE_JOURNAL": journal}).journal == journal


@pytest.mark.parametrize("journal", [one for one, _ in WITH if "://" in one])
def test_what_is_read_as_it_is_meant_is_what_postgresql_reads(journal):
    psycopg = pytest.importorskip("psycopg")
    if is_misread(journal):
        return
    secrets = {"password", "sslpassword", "scram_client_key"}
    try:
        found = psycopg.conninfo.conninfo_to_dict(journal)
        said = [str(one) for name, one in found.items() if name not in secrets]
    except psycopg.ProgrammingError as problem:  # A parameter that this version does not know.
        said = [str(problem)]
    assert not [one for one in said if "heim" in one]


@pytest.mark.parametrize("journal", [*WITHOUT, "postgresql://host:5432/db?user=bob@here&port=5"])
def test_what_has_no_password_is_not_misread(journal):
    assert not is_misread(journal)


@pytest.mark.parametrize(
    "journal", ["mysql://bob:heim@h/db", "host=h password=heim", "postgresql:/b:heim@h/db"]
)
def test_what_is_no_journal_is_refused_without_its_password(journal):
    with pytest.raises(InvalidValue, match=r"journal: wanted .*postgresql://") as wrong:
        config_of({"journal": journal})
    assert "heim" not in str(wrong.value)


def test_a_secret_is_read_without_the_end_of_its_line(tmp_path):
    file = tmp_path / "secret"
    file.write_text("geheim\n")
    file.chmod(0o600)
    assert read_secret(file) == b"geheim"
    file.chmod(0o640)
    with pytest.raises(FileRefused, match="others can read"):
        read_secret(file)


def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path, monkeypatch):
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe, 0o600)
    folder.mkdir(mode=0o700)

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("it was opened, which waits for who writes into a pipe")

    monkeypatch.setattr(Path, "open", opened)
    for path in (pipe, folder, Path("/dev/null")):
        with pytest.raises(FileRefused, match="ordinary file"):
            read_secret(path)


def test_a_name_that_no_file_can_have_is_refused():
    with pytest.raises(FileRefused, match="null"):
        read_secret(Path("a\0b"))


@pytest.mark.parametrize(
    "said",
    ["postgresql://bob:ge/heim@host/db", "postgresql://bob:ge@heim@host/db", "x://b:geheim@h"],
)
def test_a_program_that_opens_a_journal_is_not_told_its_password_either(said):
    with pytest.raises(JournalRefused) as refused:
        open_journal(said, "b")
    assert "heim" not in str(refused.value)
    assert "heim" not in without_secrets(f"journal {said} cannot be opened")
