"""How is a broker configured? A TOML file, then the environment, then what the command line says.

    name = "london"
    listen = "127.0.0.1:7400"          # and 127.0.0.1:0 takes any port that is free
    journal = "london.journal"         # or postgresql://…, or "memory:" for none
    health = "127.0.0.1:7480"          # where /health answers; none without it
    advertised = false                 # may parties publish only what they advertise?
    access = "access.toml"             # who may do what; without it, everybody everything

    [tls]
    certificate = "london.pem"
    key = "london.key"
    authority = "ca.pem"               # who must have signed the certificates of other brokers

    [tokens]
    key = "tokens.pub"                 # who must have signed the tokens of clients
    audience = "driftline"

    [[peers]]
    name = "paris"
    address = "paris.example.org:7400"
    role = "peer"                      # peer, master (it is above us), client (below), mesh
    certificate = "paris.example.org"  # what its certificate names, if that is not one of ours

    [webhooks]                         # see net/webhooks.py; without it there are none
    allow = ["https://hooks.example.org/"]

    [email]                            # see net/mailing.py; without it there is none
    host = "mail.example.org"
    sender = "driftline@example.org"
    allow = ["*@example.org"]

    [limits]
    rate = 50000

    [logs]                             # on standard error
    format = "text"                    # or json, one object a line
    level = "info"                     # debug, info, warning, error

Everything but the peers can come from the environment too: `DRIFTLINE_NAME`, `DRIFTLINE_TLS_KEY`,
`DRIFTLINE_LIMITS_RATE` and so on. Secrets are never here: there are names of files that hold them.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from driftline.broker.links import Role
from driftline.errors import FileRefused, InvalidValue
from driftline.model.value import show
from driftline.net.address import PORT, Address
from driftline.net.http import Http
from driftline.net.limits import Limits
from driftline.net.logs import Logs
from driftline.net.mailing import Email
from driftline.net.tls import Tls
from driftline.net.tokens import Tokens
from driftline.net.webhooks import Webhooks

ENVIRONMENT = "DRIFTLINE_"
TABLES: Mapping[str, type[Any]] = {
    "tls": Tls,
    "tokens": Tokens,
    "http": Http,
    "webhooks": Webhooks,
    "email": Email,
    "limits": Limits,
    "logs": Logs,
}
"""The tables of a configuration, each a record whose fields are its names."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A broker to be linked to; without an address it is the other that dials."""

    name: str
    role: Role
    address: Address | None = None
    certificate: str = ""
    """What its certificate names, if that is not the broker by our own kind of name."""


@dataclass(frozen=True, slots=True)
class Config:
    """All that a broker can be told beforehand."""

    name: str = "broker"
    listen: Address = field(default_factory=lambda: Address("127.0.0.1", PORT))
    journal: str = "memory:"
    health: Address | None = None
    advertised: bool = False
    access: Path | None = None
    tls: Tls | None = None
    tokens: Tokens | None = None
    http: Http | None = None
    webhooks: Webhooks | None = None
    email: Email | None = None
    peers: tuple[Peer, ...] = ()
    limits: Limits = field(default_factory=Limits)
    logs: Logs = field(default_factory=Logs)

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable() or len(self.name.encode()) > 255:
            raise InvalidValue("name", "1 to 255 bytes that can be printed", show(self.name))
        names = [peer.name for peer in self.peers]
        if len(set(names)) < len(names) or self.name in names:
            raise InvalidValue("peers", "other brokers, each once", ", ".join(names))
        if self.is_closed:
            self._check_closed()

    @property
    def is_closed(self) -> bool:
        """Must everybody prove who they are?"""
        return self.tokens is not None or self.access is not None

    def _check_closed(self) -> None:
        for at in (self.listen, None if self.http is None else self.http.address):
            if self.tls is None and at is not None and not at.is_loopback:
                wanted = "a certificate and a key: without TLS anybody on the way can read tokens"
                raise InvalidValue("tls", wanted, f"none, and listens on {at}")
        if self.peers and (self.tls is None or self.tls.authority is None):
            wanted = "an authority: other brokers must prove who they are too"
            raise InvalidValue("tls.authority", wanted, "none")


class Sources(NamedTuple):
    """What was said where, by names such as `listen` and `tls.key`."""

    file: dict[str, Any]
    environment: dict[str, Any]
    given: dict[str, Any]

    def together(self) -> dict[str, Any]:
        """All of it: what comes later counts."""
        said: dict[str, Any] = {}
        for some in self:
            for name, value in some.items():
                table, dot, inner = name.partition(".")
                if dot:
                    said.setdefault(table, {})[inner] = value
                else:
                    said[name] = value
        return said


def read_config(
    path: Path | None,
    given: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """The configuration of a file, changed by the environment, changed by what is given."""
    try:
        sources = sources_of(path, given, environment)
        return config_of(sources.together(), Path() if path is None else path.parent)
    except InvalidValue as problem:
        if path is None:
            raise
        raise FileRefused(str(path), None, str(problem)) from None


def sources_of(
    path: Path | None,
    given: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Sources:
    """What a configuration is made of; secrets where they must not be are refused."""
    words = os.environ if environment is None else environment
    sources = Sources(
        {} if path is None else _flat(_read(path)),
        {
            name: _scalar(words[word], kind)
            for name, (word, kind) in VARIABLES.items()
            if word in words
        },
        {name: value for name, value in (given or {}).items() if value is not None},
    )
    for some in (sources.file, sources.given):
        if _has_password(some.get("journal")):
            wanted = "no password: that comes by DRIFTLINE_JOURNAL, PGPASSWORD or PGPASSFILE"
            raise InvalidValue("journal", wanted, "one")
    return sources


def _flat(said: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in said.items():
        if name in TABLES and isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": one for inner, one in value.items()}
        else:
            flat[name] = value
    return flat


def _variables() -> Iterator[tuple[str, tuple[str, str]]]:
    """Each setting that the environment can say: its name, the variable, and of what kind it is."""
    for one in fields(Config):
        variable = f"{ENVIRONMENT}{one.name.upper()}"
        if one.name in TABLES:
            for inner in fields(TABLES[one.name]):
                kind = str(inner.type).partition(" |")[0]
                yield f"{one.name}.{inner.name}", (f"{variable}_{inner.name.upper()}", kind)
        elif one.name != "peers":
            yield one.name, (variable, "str")


VARIABLES: Mapping[str, tuple[str, str]] = dict(_variables())


def _scalar(word: str, kind: str) -> object:
    """What a word of the environment means, where something of this kind is wanted."""
    if kind == "bool":
        return _flag(word, "environment")
    if kind in ("int", "float"):
        for number in (int, float):
            with suppress(ValueError):
                return number(word)
    if kind == "tuple[str, ...]":
        return word.split()
    return word


def _has_password(journal: object) -> bool:
    if not isinstance(journal, str) or "://" not in journal:
        return False
    try:
        return urlsplit(journal).password is not None or "password=" in journal.lower()
    except ValueError:
        return False


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as problem:
        raise FileRefused(str(path), None, problem.strerror or str(problem)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise FileRefused(str(path), None, f"no TOML: {problem}") from None


def config_of(said: Mapping[str, Any], base: Path = Path()) -> Config:
    """The configuration that these words and tables say; files are looked for from `base` on."""
    known = {one.name for one in fields(Config)}
    if unknown := said.keys() - known:
        wanted = f"only {', '.join(sorted(known))}"
        raise InvalidValue("configuration", wanted, ", ".join(sorted(unknown)))
    given: dict[str, Any] = dict(said)
    for name in ("name", "journal", "access"):
        if name in given and not isinstance(given[name], str):
            raise InvalidValue(name, "a text", show(given[name]))
    for name in ("listen", "health"):
        if name in given:
            given[name] = Address.of(given[name], name) if given[name] else None
    if "advertised" in given:
        given["advertised"] = _flag(given["advertised"], "advertised")
    for name, kind in TABLES.items():
        if name in given:
            given[name] = _of(kind, given[name], name, base)
    if given.get("access") is not None:
        given["access"] = base / given["access"]
    if "peers" in given:
        given["peers"] = tuple(_peer(one) for one in _list(given["peers"], "peers"))
    journal = given.get("journal")
    if journal and ":" not in journal:
        given["journal"] = str(base / journal)
    return Config(**given)


def _flag(said: object, where: str) -> bool:
    words = {True: True, False: False, "true": True, "1": True, "false": False, "0": False}
    if not isinstance(said, bool | str) or said not in words:
        raise InvalidValue(where, "true or false", show(said))
    return words[said]


def _list(said: object, where: str) -> list[Any]:
    if not isinstance(said, list):
        raise InvalidValue(where, f"tables [[{where}]]", show(said))
    return said


def _of(kind: type[Any], said: object, where: str, base: Path) -> Any:
    """A record of a table whose names are its fields; files are looked for from `base` on."""
    if not isinstance(said, Mapping):
        raise InvalidValue(where, "a table", show(said))
    known = {one.name for one in fields(kind)}
    if unknown := said.keys() - known:
        wanted = f"only {', '.join(sorted(known))}"
        raise InvalidValue(where, wanted, ", ".join(sorted(map(str, unknown))))
    needed = [one.name for one in fields(kind) if one.default is one.default_factory is MISSING]
    if missing := [name for name in needed if name not in said]:
        raise InvalidValue(where, f"at least {', '.join(needed)}", f"no {', '.join(missing)}")
    types = {one.name: str(one.type).partition(" |")[0] for one in fields(kind)}
    given = {}
    for name, one in said.items():
        wanted, kinds = _KINDS[types[name]]
        if not isinstance(one, kinds) or (isinstance(one, bool) and kinds is not bool):
            raise InvalidValue(f"{where}.{name}", wanted, show(one))
        given[name] = base / str(one) if types[name] == "Path" else one
        if isinstance(one, list):
            given[name] = _texts(one, f"{where}.{name}")
    return kind(**given)


def _texts(said: list[Any], where: str) -> tuple[str, ...]:
    if not all(isinstance(one, str) for one in said):
        raise InvalidValue(where, "a list of texts", show(said))
    return tuple(said)


_KINDS: Mapping[str, tuple[str, Any]] = {
    "str": ("a text", str),
    "int": ("a number", int | float),
    "float": ("a number", int | float),
    "bool": ("true or false", bool),
    "Path": ("the name of a file", str),
    "tuple[str, ...]": ("a list of texts", list),
}
"""What a field of a kind is given by, and what that is called."""


def _peer(said: object) -> Peer:
    names = {"name", "address", "role", "certificate"}
    if not isinstance(said, Mapping) or not {"name"} <= said.keys() <= names:
        raise InvalidValue("peers", "a name, a role, and an address if it is dialled", show(said))
    address = said.get("address")
    return Peer(
        str(said["name"]),
        role_of(said.get("role", "peer")),
        None if address is None else Address.of(address, f"address of {said['name']}"),
        str(said.get("certificate", "")),
    )


def role_of(said: object) -> Role:
    """The role that a word names."""
    if not isinstance(said, str) or said not in tuple(Role):
        raise InvalidValue("role", ", ".join(Role), show(said))
    return Role(said)
