"""Does every error keep its facts, also on its way between processes?"""

from __future__ import annotations

import inspect
import pickle

import pytest

from driftline import errors

EXAMPLES = [
    errors.DriftlineError("something"),
    errors.LanguageError("a SELECT", "DROP", 1, 8),
    errors.LanguageError("a text", "int"),
    errors.LimitExceeded("at most 3", "4", 2, 1),
    errors.InvalidValue("attribute x", "a number", "'é'"),
    errors.ParameterError(("lo",), ("low",), (":hi: wanted a number, came string",)),
    errors.TableError("stock", "has no key"),
    errors.NotAdvertised("alice", "quote", "x is not advertised"),
    errors.NotSupported("a view", "not here"),
    errors.SubscriptionEnded(7),
    errors.FileRefused("events.jsonl", 3, "no JSON"),
    errors.FileRefused("events.jsonl", None, "not found"),
    errors.FrameRefused("frame at byte 0", "version 1", "version 7"),
    errors.NotAuthenticated("the token has expired"),
    errors.NotAllowed("alice", "publish a quote"),
    errors.LimitReached("subscriptions", 7),
    errors.ReasonLeftOff("NotAllowed"),
    errors.BrokerFailed("paris", "cannot listen"),
    errors.CannotListen("127.0.0.1:7400", "address already in use"),
    errors.Unreachable("driftline://127.0.0.1:7400", "no answer within 10 s"),
    errors.NotEffective("set", ("paris", "rome")),
    errors.JournalError("b.journal", "is gone"),
    errors.JournalInUse("b.journal", "process 7 has it open"),
    errors.JournalRefused("b.journal", "it is that of broker 'a'"),
    errors.JournalDamaged("b.journal", "an entry is not what was written"),
    errors.JournalUnavailable("b.journal", "the server does not answer"),
    errors.JournalFull("b.journal", "the disk is full"),
    errors.PipelineFailed("starting Spark", "no Java"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling_with_its_text_and_facts(error, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert isinstance(again, errors.DriftlineError)


def test_every_error_class_has_an_example_above() -> None:
    classes = {
        found
        for _, found in inspect.getmembers(errors, inspect.isclass)
        if issubclass(found, errors.DriftlineError)
    }
    assert classes == {type(error) for error in EXAMPLES}
