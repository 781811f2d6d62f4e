"""Does a journal in PostgreSQL keep others out, and outlive its server and its connections?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from driftline.errors import JournalInUse, JournalRefused, JournalUnavailable
from driftline.net.journal.group import GroupCommit
from driftline.net.journal.postgres import PostgresJournal
from driftline.net.journal.stored import FORMAT
from tests.net.conftest import Server


@pytest.fixture
def opened(database: str) -> Iterator[Callable[..., PostgresJournal]]:
    """Opens journals at an address, soon impatient, and closes all of them in the end."""
    made: list[PostgresJournal] = []

    def another(name: str = "b", patience: float = 0.3) -> PostgresJournal:
        made.append(PostgresJournal(database, name, patience))
        return made[-1]

    yield another
    for one in made:
        one.close()


def test_two_do_not_open_one_journal(opened: Callable[..., PostgresJournal]) -> None:
    first = opened()
    with pytest.raises(JournalInUse, match=r"'driftline \d+ .*server process \d+.* end that first"):
        opened()
    first.close()
    opened()


def test_journals_in_schemas_of_one_database_do_not_meet(
    opened: Callable[..., PostgresJournal], database: str
) -> None:
    first = opened()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other")
    second = PostgresJournal(f"{database.partition('&')[0]}&options=-csearch_path%3Dother", "c")
    first.commit([{("seen", "a"): 1}])
    second.commit([{("seen", "a"): 2}])
    assert (first.load(), second.load()) == ({("seen", "a"): 1}, {("seen", "a"): 2})
    second.close()


def test_the_journal_of_another_broker_or_a_newer_format_is_refused(
    opened: Callable[..., PostgresJournal], database: str
) -> None:
    opened().close()
    with pytest.raises(JournalRefused, match="it is that of broker 'b', not of 'c'"):
        opened("c")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE driftline_about SET format = 9")
    with pytest.raises(JournalRefused, match="it has format 9, and up to 2 is known"):
        opened()


def test_an_older_format_is_read_and_is_ours_from_then_on(
    opened: Callable[..., PostgresJournal], database: str
) -> None:
    opened().close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE driftline_about SET format = 1")
        opened().close()
        assert connection.execute("SELECT format FROM driftline_about").fetchone() == (FORMAT,)


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    address = "postgresql://b:secret@localhost:1/d"
    with pytest.raises(JournalUnavailable, match="localhost:1/d") as refused:
        PostgresJournal(address, "b")
    assert "secret" not in str(refused.value)


def test_a_server_that_is_killed_between_commits_is_found_again(
    opened: Callable[..., PostgresJournal], server: Server
) -> None:
    journal = opened(patience=20)
    journal.incarnation()
    for number in range(1, 7):
        journal.commit([{("seen", str(number)): number}])
        if number % 2:
            server.kill()
            server.start()
    assert [*journal.load().values()] == [*range(1, 7)]
    journal.close()
    assert opened().incarnation() == 2


def test_what_waits_is_kept_when_the_server_is_back(
    opened: Callable[..., PostgresJournal], server: Server
) -> None:
    journal, told, all_kept = opened(patience=0.05), list[object](), threading.Event()
    group = GroupCommit(journal)
    server.kill()
    for number in range(1, 51):

        def done(problem: object, number: int = number) -> None:
            told.append(number if problem is None else problem)
            if told[-1] == 50:
                all_kept.set()

        group.submit([{("seen", str(number)): number}], done)
    time.sleep(0.2)
    server.start()
    assert all_kept.wait(20)
    assert [one for one in told if isinstance(one, int)] == [*range(1, 51)]
    assert isinstance(told[0], JournalUnavailable)
    assert [*journal.load().values()] == [*range(1, 51)]
    assert group.close()


class Cut:
    """Loses the connection of a journal at its next commit: before the server has it, or after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.when: str | None = None
        pipeline = psycopg.Connection.pipeline

        @contextmanager
        def cut(connection: psycopg.Connection) -> Iterator[object]:
            when, self.when = self.when, None
            if when == "before":
                connection.pgconn.finish()
            with pipeline(connection) as one:
                yield one
            if when == "after":
                connection.pgconn.finish()
                raise psycopg.OperationalError("the connection is lost")

        monkeypatch.setattr(psycopg.Connection, "pipeline", cut)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_outcome_is_unknown_is_made_once(
    opened: Callable[..., PostgresJournal], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    journal, cut = opened(patience=5), Cut(monkeypatch)
    journal.commit([{("seen", "a"): 1, ("seen", "b"): 1}])
    cut.when = when
    # If it were made again, a would come behind c.
    journal.commit([{("seen", "a"): None}, {("seen", "a"): 2}, {("seen", "c"): 2}])
    assert [*journal.load()] == [("seen", "b"), ("seen", "a"), ("seen", "c")]
    assert journal._state is not None
    assert journal._state.commits == 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_it_is_known_at_the_next_attempt_too(
    opened: Callable[..., PostgresJournal], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    journal, cut = opened(patience=-1), Cut(monkeypatch)
    journal.commit([{("seen", "a"): 1}])
    cut.when = when
    first = [{("seen", "a"): None}, {("seen", "a"): 2}, {("seen", "c"): 2}]
    with pytest.raises(JournalUnavailable):
        journal.commit(first)
    cut.when = when
    with pytest.raises(JournalUnavailable):
        journal.commit([*first, {("seen", "d"): 3}])
    journal.commit([*first, {("seen", "d"): 3}, {("seen", "b"): 4}])
    assert [key for _, key in journal.load()] == ["a", "c", "d", "b"]
    assert journal._state is not None
    assert journal._state.commits == (4 if when == "after" else 2)


def test_whoever_came_in_between_is_noticed(
    opened: Callable[..., PostgresJournal], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened()
    journal.incarnation()
    assert journal._connection is not None
    journal._connection.pgconn.finish()
    other = opened(patience=10)  # The server may notice a little later.
    other.incarnation()
    other.close()
    with pytest.raises(JournalInUse, match="another process has written it"):
        journal.commit([{("seen", "a"): 1}])
    assert opened().load() == {}


def test_a_session_that_has_lost_its_lock_writes_nothing(
    opened: Callable[..., PostgresJournal],
) -> None:
    journal = opened()
    assert journal._connection is not None
    journal._connection.execute("SELECT pg_advisory_unlock_all()")
    other = opened()
    other.commit([{("seen", "a"): 1}])
    with pytest.raises(JournalInUse, match="another process has written it"):
        journal.commit([{("seen", "a"): 2}])
    assert other.load() == {("seen", "a"): 1}


def test_a_connection_that_the_server_still_holds_is_ended(
    opened: Callable[..., PostgresJournal],
) -> None:
    journal = opened(patience=10)
    journal.commit([{("seen", "a"): 1}])
    # As if the network had failed: we think that it is gone, the server does not.
    before = journal._connection
    journal._connection = None
    journal.commit([{("seen", "a"): 2}])
    assert journal.load() == {("seen", "a"): 2}
    assert before is not None
    with pytest.raises(psycopg.OperationalError):
        before.execute("SELECT 1")


def test_commits_are_synced(opened: Callable[..., PostgresJournal]) -> None:
    journal = opened()
    assert journal._connection is not None
    assert journal._connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
