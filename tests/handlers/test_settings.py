"""Are the tables of handlers read, checked and shown, and their secrets not?"""

from __future__ import annotations

import pytest

from driftline.errors import DriftlineError
from driftline.net.config import config_of
from driftline.net.configured import check, doubts

MAIL = {"host": "mail.example.org", "sender": "d@example.org", "allow": ["*@example.org"]}
HOOKS = {"allow": ["https://hooks.example.org/"]}

WRONG = [
    ({"webhooks": {}}, "at least allow"),
    ({"webhooks": {"allow": []}}, "webhooks.allow"),
    ({"webhooks": {"allow": ["hooks.example.org"]}}, "webhooks.allow"),
    ({"webhooks": {"allow": ["https://*.example.org/"]}}, "webhooks.allow"),
    ({"webhooks": {"allow": ["https://hooks.example.org/?x=1"]}}, r"without \?"),
    ({"webhooks": {"allow": ["https://"]}}, "webhooks.allow"),
    ({"webhooks": HOOKS | {"attempts": 0}}, "webhooks.attempts"),
    ({"webhooks": HOOKS | {"timeout": 1e9}}, "webhooks.timeout"),
    ({"webhooks": HOOKS | {"secret": "x"}}, "secret"),
    ({"webhooks": HOOKS}, "DRIFTLINE_WEBHOOKS_SECRET"),
    ({"webhooks": HOOKS | {"secret_file": "missing"}}, "No such file"),
    ({"email": MAIL | {"security": "none"}}, "starttls or tls"),
    ({"email": MAIL | {"security": "ssl"}}, "one of starttls"),
    ({"email": MAIL | {"allow": ["*"]}}, "email.allow"),
    ({"email": MAIL | {"allow": ["*@*.org"]}}, "email.allow"),
    ({"email": MAIL | {"sender": "me"}}, "email.sender"),
    ({"email": MAIL | {"sender": "a@b.org\r\nBcc: c@d.org"}}, "email.sender"),
    ({"email": MAIL | {"host": "mail example"}}, "email.host"),
    ({"email": MAIL | {"port": 70_000}}, "email.port"),
    ({"email": MAIL | {"user": "d"}}, "DRIFTLINE_EMAIL_PASSWORD"),
    ({"email": MAIL | {"authority": "missing.pem"}}, "missing.pem"),
]


@pytest.mark.parametrize(("said", "why"), WRONG, ids=[why for _, why in WRONG])
def test_what_does_not_hold_is_refused(said, why):
    with pytest.raises(DriftlineError, match=why):
        check(config_of(said))


def test_a_short_secret_or_one_that_others_can_read_is_refused(tmp_path):
    file = tmp_path / "secret"
    file.write_text("short")
    file.chmod(0o600)
    config = config_of({"webhooks": HOOKS | {"secret_file": str(file)}})
    with pytest.raises(DriftlineError, match="at least 32"):
        check(config)
    file.write_text("m" * 32)
    check(config)
    file.chmod(0o644)
    with pytest.raises(DriftlineError, match="others can read"):
        check(config)


def test_secrets_are_not_shown_and_the_environment_says_the_rest(driftline, tmp_path, monkeypatch):
    file = tmp_path / "broker.toml"
    file.write_text('[webhooks]\nallow = ["http://hooks.example.org/"]\n')
    monkeypatch.setenv("DRIFTLINE_WEBHOOKS_SECRET", "s3cret" * 10)
    monkeypatch.setenv("DRIFTLINE_WEBHOOKS_TIMEOUT", "3")
    monkeypatch.setenv("DRIFTLINE_EMAIL_HOST", "localhost")
    monkeypatch.setenv("DRIFTLINE_EMAIL_SENDER", "d@example.org")
    monkeypatch.setenv("DRIFTLINE_EMAIL_ALLOW", "*@example.org ops@example.net")
    monkeypatch.setenv("DRIFTLINE_EMAIL_USER", "d")
    monkeypatch.setenv("DRIFTLINE_EMAIL_PASSWORD", "pa55word")
    ran = driftline("config", "show", file, "--json")
    found = {one["name"]: (one["value"], one["origin"]) for one in ran.data}
    assert found["webhooks.timeout"] == (3, "DRIFTLINE_WEBHOOKS_TIMEOUT")
    assert found["webhooks.allow"] == (["http://hooks.example.org/"], "file")
    assert found["email.allow"][0] == ["*@example.org", "ops@example.net"]
    ran = driftline("config", "check", file, "--json")
    assert ran.code == 0
    assert any("can be read by anybody on the way" in one for one in ran.data["doubts"])
    assert not any("means nothing" in one for one in ran.data["doubts"])
    for text in (driftline("config", "show", file).out, ran.out):
        assert "s3cret" not in text
        assert "pa55word" not in text


def test_nothing_is_doubted_of_what_is_safe():
    said = config_of({"webhooks": HOOKS, "journal": "a.journal"})
    assert doubts(said, {}) == []


@pytest.mark.parametrize(
    ("address", "is_doubted"),
    [
        ("http://127.0.0.1:8080/in/", False),
        ("http://[::1]/", False),
        ("http://localhost/in", False),
        ("https://hooks.example.org/", False),
        ("http://127.example.org/", True),
        ("http://10.0.0.1/", True),
        ("http://[2001:db8::1]/", True),
    ],
)
def test_what_leaves_this_machine_as_it_is_may_be_read_on_the_way(address, is_doubted):
    said = config_of({"webhooks": {"allow": [address]}, "journal": "a.journal"})
    doubted = [f"webhooks to {address} can be read by anybody on the way"]
    assert doubts(said, {}) == (doubted if is_doubted else [])
