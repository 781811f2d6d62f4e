"""Are signatures those of Standard Webhooks, and is nothing else taken for one?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import InvalidValue, NotAuthenticated
from driftline.handlers.signing import derived, secret_text, signed, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, AT, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_example_of_standard_webhooks_is_signed_as_there():
    headers = signed(ID, BODY, [SECRET], AT)
    assert headers["webhook-signature"] == SIGNATURE
    assert verify(headers, BODY, SECRET, now=AT) == ID


def test_names_of_headers_and_other_signatures_do_not_matter():
    headers = {"Webhook-Id": ID, "WEBHOOK-TIMESTAMP": str(AT)}
    for some in (f"v1,AAAA {SIGNATURE}", f"v1a,xyz {SIGNATURE} v2,é"):
        assert verify(headers | {"Webhook-Signature": some}, BODY, SECRET, now=AT) == ID


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"webhook-id": "msg"}, "not signed"),
        ({"webhook-timestamp": str(AT + 1)}, "not signed"),
        ({"webhook-timestamp": str(AT - 301)}, "too old"),
        ({"webhook-timestamp": str(AT + 301)}, "too old"),
        ({"webhook-timestamp": "nan"}, "when it was sent"),
        ({"webhook-timestamp": "-1"}, "when it was sent"),
        ({"webhook-timestamp": "9" * 400}, "when it was sent"),
        ({"webhook-timestamp": "١٦١٤٢٦٥٣٣٠"}, "when it was sent"),
        ({"webhook-signature": ""}, "not signed"),
        ({"webhook-signature": SIGNATURE.removeprefix("v1,")}, "not signed"),
        ({"webhook-signature": SIGNATURE.replace("v1,", "v2,")}, "not signed"),
        ({"webhook-signature": "v1,é"}, "not signed"),
        ({"webhook-signature": "v1,x " * 100 + SIGNATURE}, "not signed"),
    ],
)
def test_what_was_changed_is_refused(change, why):
    headers = signed(ID, BODY, [SECRET], AT) | change
    with pytest.raises(NotAuthenticated, match=why):
        verify(headers, BODY, SECRET, now=AT)


def test_a_secret_that_is_none_is_said_and_not_shown():
    with pytest.raises(InvalidValue) as found:
        verify(signed(ID, BODY, [SECRET], AT), BODY, "hunter2!", now=AT)
    assert "hunter2" not in str(found.value)


@given(st.binary(min_size=32, max_size=40), st.text(max_size=9), st.text(max_size=9))
def test_each_subscription_and_generation_has_a_key_of_its_own(master, one, other):
    keys = {derived(master, party, at) for party in {one, other} for at in (0, 1)}
    assert len(keys) == 2 * len({one, other})
    assert all(len(key) == 32 and master not in key for key in keys)
    assert secret_text(derived(master, one, 0)) == secret_text(derived(master, one, 0))
