"""Can nobody make a broker send something to where it may not?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import InvalidValue
from driftline.handlers.handlers import Handlers
from driftline.handlers.mailing import Mail
from driftline.handlers.webhooks import Webhooks, _url
from driftline.net.config import Config
from driftline.net.mailing import Email
from driftline.net.web_address import WebAddress
from driftline.net.webhooks import Webhooks as Settings

ALLOW = (
    "https://hooks.example.org/in/",
    "https://hooks.example.org:8443",
    "http://127.0.0.1:80/a",
    "https://xn--bcher-kva.example/",
    "https://[::1]:8443/in/",
)

FINE = [
    "https://hooks.example.org/in/",
    "https://hooks.example.org/in/alice",
    "https://hooks.example.org/in/a/b?key=1&more=%2F",
    "https://hooks.example.org/in/%C3%A9",
    "https://hooks.example.org/in/..well/...",
    "https://hooks.example.org/in/a%20b/%E4%B8%AD",
    "https://xn--bcher-kva.example/x",
    "https://[::1]:8443/in/x",
    "https://hooks.example.org:8443/",
    "https://hooks.example.org:8443/anything",
    "http://127.0.0.1/a",
    "http://127.0.0.1/a/b",
]

REFUSED = [
    "https://hooks.example.org/in/..%3b/admin",
    "https://hooks.example.org/in/%2e%2e%3b/admin",
    "https://hooks.example.org/in/..%c0%af",
    "https://hooks.example.org/in/..%ef%bc%8f/admin",
    "https://hooks.example.org/in/..%23/a",
    # Elsewhere.
    "https://example.org/in/alice",
    "https://hooks.example.org/",
    "https://hooks.example.org/inside",
    "https://hooks.example.org:444/in/alice",
    "http://hooks.example.org/in/alice",
    "http://127.0.0.1/ab",
    "http://127.0.0.2/a",
    "http://169.254.169.254/latest/meta-data/",
    "http://localhost/a",
    "http://[::1]/a",
    "http://[::ffff:127.0.0.1]/a",
    # The same machine, written in another way.
    "http://127.1/a",
    "http://2130706433/a",
    "http://0x7f000001/a",
    "http://0177.0.0.1/a",
    "http://127.0.0.1./a",
    "http://①②⑦.⓪.⓪.①/a",
    # Looks like one place, and is another.
    "https://hooks.example.org@evil.example/in/alice",
    "https://hooks.example.org:443@evil.example/in/alice",
    "https://user:word@hooks.example.org/in/alice",
    "https://@hooks.example.org/in/alice",
    "https://hooks.example.org.evil.example/in/alice",
    "https://evil.example/https://hooks.example.org/in/",
    "https://evil.example#@hooks.example.org/in/",
    "https://evil.example?@hooks.example.org/in/",
    "https://evil.example\\@hooks.example.org/in/alice",
    "https:\\\\hooks.example.org\\in\\alice",
    "https:hooks.example.org/in/alice",
    "https:///hooks.example.org/in/alice",
    "//hooks.example.org/in/alice",
    "https://hooks.example.org%2f@evil.example/in/",
    "https://hooks.example.org%00.evil.example/in/",
    "https://hooks.ex\u0430mple.org/in/alice",
    "https://hooks。example.org/in/alice",
    "https://hooks.example.org:/in/alice",
    "https://hooks.example.org:0/in/alice",
    "https://hooks.example.org:99999/in/alice",
    "https://hooks.example.org:+443/in/alice",
    "https://hooks.example.org:443x/in/alice",
    "https://-hooks.example.org/in/alice",
    # Out of the path.
    "https://hooks.example.org/in/../admin",
    "https://hooks.example.org/in/./alice",
    "https://hooks.example.org/in/%2e%2e/admin",
    "https://hooks.example.org/in/%2E./admin",
    "https://hooks.example.org/in/.%2e/admin",
    "https://hooks.example.org/in/%252e%252e/admin",
    "https://hooks.example.org/in/..%2fadmin",
    "https://hooks.example.org/in/..%5cadmin",
    "https://hooks.example.org/in/..\\admin",
    "https://hooks.example.org/in/..;/admin",
    "https://hooks.example.org/in/..;x=1/admin",
    "https://hooks.example.org/in/a/..",
    "https://hooks.example.org/in/.%09./x",
    "https://hooks.example.org/in/.%20./x",
    "https://hooks.example.org/in/.%0B/x",
    "https://hooks.example.org/in/.%7F./x",
    "https://hooks.example.org/in/.%C2%AD./x",
    "https://hooks.example.org/in/.%E2%80%8B./x",
    "https://hooks.example.org/in/.%C2%A0./x",
    "https://hooks.example.org/in/%c0%ae%c0%ae/x",
    "https://hooks.example.org/in/.%c0%ae/x",
    "https://hooks.example.org/in/%e0%80%ae./x",
    "https://hooks.example.org/in/%EF%BC%8E%EF%BC%8E/x",
    "https://hooks.example.org/in/%EF%BC%8E/x",
    "https://hooks.example.org/in/.%E2%80%A4/x",
    "https://hooks.example.org/in/%E2%80%A5/x",
    "https://hooks.example.org/in/%E3%80%82%EF%BD%A1/x",
    "https://hooks.example.org/in/a%EF%BC%8F../x",
    "https://hooks.example.org/in/a%EF%BC%BC../x",
    "https://hooks.example.org/in/%EF%BC%852e%EF%BC%852e/x",
    "https://hooks.example.org/in/%00",
    "https://hooks.example.org/in/%zz",
    # More than an address.
    "https://hooks.example.org/in/alice#here",
    "https://hooks.example.org/in/alice HTTP/1.1",
    "https://hooks.example.org/in/alice\r\nhost: evil.example",
    "https://hooks.example.org/in/al\tice",
    " https://hooks.example.org/in/alice",
    "https://hooks.example.org/in/alice\n",
    "https://hooks.example.org/in/" + "a" * 2000,
    # Not in the plain form.
    "HTTPS://hooks.example.org/in/alice",
    "https://Hooks.Example.ORG/in/alice",
    "https://hooks.example.org:443/in/alice",
    "https://hooks.example.org:08443/in/alice",
    "https://hooks.example.org/in/alice?",
    # No webhook at all.
    "file:///etc/passwd",
    "ftp://hooks.example.org/in/alice",
    "gopher://hooks.example.org/in/alice",
    "https://",
    "https",
    "",
]


@pytest.fixture(scope="module")
def hooks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFTLINE_WEBHOOKS_SECRET", "m" * 32)
        return Webhooks(Settings(ALLOW))


@pytest.mark.parametrize("address", FINE)
def test_what_is_allowed_is_sent_where_it_says(hooks, address):
    found = hooks.address(address)
    assert str(_url(found)) == str(found) == address


@pytest.mark.parametrize("address", REFUSED)
def test_what_is_not_plain_and_allowed_is_refused(hooks, address):
    with pytest.raises(InvalidValue, match="handler"):
        hooks.address(address)


@pytest.mark.parametrize(
    "address",
    [
        "http://user:geheim@hooks.example.org/in/",
        "https://user:ge/heim@hooks.example.org/in/",
        "https://user:geheim@hooks.example.org:99999/in/",
        "https://user:geheim@[::1/in/",
        "https://user:geheim@hooks.example.org/in/\n",
        "https://user:geheim@hooks.example.org/" + "a" * 2000,
        "ftp://user:geheim@hooks.example.org/in/",
    ],
)
def test_what_is_refused_is_shown_without_a_password(monkeypatch, address):
    monkeypatch.setenv("DRIFTLINE_WEBHOOKS_SECRET", "m" * 32)
    config = Config("b", webhooks=Settings(ALLOW))
    # Whoever looks for it may also find half of it.
    with pytest.raises(InvalidValue, match="handler") as found:
        Handlers(config).handles(address)
    assert "heim" not in str(found.value)


def test_a_label_of_a_host_has_63_letters_at_most():
    long = f"https://{'a' * 63}.{'b' * 63}.example/in/"
    assert str(_url(WebAddress.of(long))) == long
    with pytest.raises(InvalidValue, match="the plain name of a host"):
        WebAddress.of(f"https://{'a' * 64}.example/in/")


@given(st.text("htps:/.@\\%2eE5cfF#?;[]0127axin\t\n①。 ", max_size=20))
def test_whatever_is_put_behind_an_allowed_address_stays_below_it(tail):
    try:
        found = WebAddress.of("https://hooks.example.org/in/" + tail)
    except InvalidValue:
        return
    url = _url(found)
    assert (url.scheme, url.host, url.port, url.userinfo) == (
        "https",
        "hooks.example.org",
        None,
        b"",
    )
    assert url.raw_path.startswith(b"/in/")


@given(st.text("htps:/.@\\%2e5c#?0127axhooks.example.org\t ", max_size=30))
def test_two_parsers_agree_on_whatever_is_taken(text):
    try:
        found = WebAddress.of("https://" + text)
    except InvalidValue:
        return
    assert _url(found).host == found.host


MAIL = Email("127.0.0.1", "driftline@example.org", ("*@example.org", "ops@example.net"))


@pytest.mark.parametrize(
    "address", ["mailto:alice@example.org", "mailto:a.b+c@example.org", "mailto:ops@example.net"]
)
def test_mailboxes_that_are_allowed(address):
    assert f"mailto:{Mail('b', MAIL).address(address)}" == address


@pytest.mark.parametrize(
    "address",
    [
        "mailto:alice@example.net",
        "mailto:alice@sub.example.org",
        "mailto:alice@example.org.evil.example",
        "mailto:alice@evil.example,ops@example.net",
        "mailto:alice@example.org,mallory@evil.example",
        "mailto:alice@example.org?bcc=mallory@evil.example",
        "mailto:alice@example.org\r\nBcc: mallory@evil.example",
        "mailto:alice@example.org\n",
        "mailto:<alice@example.org>",
        "mailto:Alice <alice@example.org>",
        'mailto:"mallory@evil.example"@example.org',
        "mailto:mallory%40evil.example@example.org",
        "mailto:mallory@evil.example@example.org",
        "mailto:@evil.example:alice@example.org",
        "mailto:mallory!evil@example.org",
        "mailto:alice@EXAMPLE.org",
        "mailto:*@example.org",
        "mailto:a..b@example.org",
        "mailto:älice@example.org",
        "mailto:",
        "mailto:" + "a" * 300 + "@example.org",
    ],
)
def test_other_mailboxes_are_refused(address):
    with pytest.raises(InvalidValue, match="handler"):
        Mail("b", MAIL).address(address)
