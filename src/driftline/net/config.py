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

The name of a file counts from where it was said: in a configuration from the folder of that, in the
environment and on the command line from where the broker is started.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from driftline.broker.links import Role
from driftline.errors import DriftlineError, FileRefused, InvalidValue
from driftline.model.value import show
from driftline.net.address import PORT, Address
from driftline.net.http import Http
from driftline.net.limits import Limits
from driftline.net.logs import Logs
from driftline.net.mailing import Email
from driftline.net.secrets import has_password, without_password
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

    def __post_init__(self) -> None:
        check_name(self.name, "peers.name")


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
        check_name(self.name, "name")
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


def check_name(name: str, where: str) -> None:
    """Names are in one-line errors, logs and tables."""
    if not name or not name.isprintable() or len(name.encode()) > 255:
        raise InvalidValue(where, "1 to 255 bytes that can be printed", show(name))


class Sources(NamedTuple):
    """What was said where, by names such as `listen` and `tls.key`."""

    file: dict[str, Any]
    environment: dict[str, Any]
    given: dict[str, Any]

    def together(self, base: Path = Path()) -> dict[str, Any]:
        """All of it: what comes later counts. Files of the file are looked for from `base` on."""
        said: dict[str, Any] = {}
        for name, value in self.file.items():
            _put(said, name, _placed(name, value, base))
        for some in (self.environment, self.given):
            for name, value in some.items():
                _put(said, name, value)
        return said


def placed(said: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """The same settings; files are looked for from `base` on, wherever they are said then."""
    return Sources(_flat(said), {}, {}).together(base)


def _put(said: dict[str, Any], name: str, value: object) -> None:
    table, dot, inner = name.partition(".")
    if dot and table in TABLES:
        if not isinstance(said.setdefault(table, {}), dict):
            raise InvalidValue(table, "a table", show(said[table]))
        said[table][inner] = value
    else:
        said[name] = value


def _placed(name: str, value: object, base: Path) -> object:
    """The name of a file, from `base` on; anything else as it is: it is looked at later."""
    if not isinstance(value, str) or not value:
        return value
    if name in PATHS or (name == "journal" and ":" not in value):
        return str(base / value)
    return value


def read_config(
    path: Path | None,
    given: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """The configuration of a file, changed by the environment, changed by what is given."""
    sources = sources_of(path, given, environment)
    try:
        return config_of(sources.together(Path() if path is None else path.parent))
    except InvalidValue as problem:
        raise _said_by(problem, path, sources) from None


def _said_by(problem: InvalidValue, path: Path | None, sources: Sources) -> DriftlineError:
    """The same, with where it is to be put right: in a variable, or in the file.

    What the command line has said is before everybody's eyes.
    """
    name = problem.where
    if name in sources.given or name.partition(".")[0] in sources.given:
        return problem
    if name in sources.environment:
        where = f"{VARIABLES[name][0]}: {name}"
        return InvalidValue(where, problem.wanted, problem.came)
    return problem if path is None else FileRefused(str(path), None, str(problem))


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
            name: _scalar(words[word], kind, word)
            for name, (word, kind) in VARIABLES.items()
            if word in words
        },
        {name: value for name, value in (given or {}).items() if value is not None},
    )
    check_no_password(sources.given)
    try:
        check_no_password(sources.file)
    except InvalidValue as problem:
        raise FileRefused(str(path), None, str(problem)) from None
    return sources


def check_no_password(said: Mapping[str, Any]) -> None:
    """Refuse settings that are copied about, or that everybody sees, and say a password."""
    journal = said.get("journal")
    if isinstance(journal, str) and has_password(journal):
        wanted = "no password: that comes by DRIFTLINE_JOURNAL, PGPASSWORD or PGPASSFILE"
        came = "one, or an @ in a parameter, which is written %40"
        raise InvalidValue("journal", wanted, came)


def _flat(said: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in said.items():
        if name in TABLES and isinstance(value, Mapping) and value:
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
PATHS = frozenset(["access", *(name for name, (_, kind) in VARIABLES.items() if kind == "Path")])
"""The settings that are names of files; a journal may be one too."""


def _scalar(word: str, kind: str, variable: str) -> object:
    """What a word of the environment means, where something of this kind is wanted."""
    if kind == "bool":
        return _flag(word, variable)
    if kind in ("int", "float"):
        for number in (int, float):
            with suppress(ValueError):
                return number(word)
    if kind == "tuple[str, ...]":
        return word.split()
    return word


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as problem:
        raise FileRefused(str(path), None, problem.strerror or str(problem)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise FileRefused(str(path), None, f"no TOML: {problem}") from None
    except RecursionError:
        raise FileRefused(str(path), None, "no TOML: lists in lists, too deep") from None


def config_of(said: Mapping[str, Any], base: Path = Path()) -> Config:
    """The configuration that these words and tables say; files are looked for from `base` on."""
    check_known(said, {one.name for one in fields(Config)}, "configuration")
    given: dict[str, Any] = dict(said)
    if "name" in given and not isinstance(given["name"], str):
        raise InvalidValue("name", "a text", show(given["name"]))
    if "journal" in given:
        given["journal"] = _journal(given["journal"], base)
    if "access" in given:
        given["access"] = _file(given["access"], "access", base)
    if "listen" in given:
        given["listen"] = Address.of(given["listen"], "listen")
    if "health" in given:
        # Nothing in the environment can say that there is none, but an empty word.
        is_none = given["health"] in ("", None)
        given["health"] = None if is_none else Address.of(given["health"], "health")
    if "advertised" in given:
        given["advertised"] = _flag(given["advertised"], "advertised")
    for name, kind in TABLES.items():
        if name in given:
            given[name] = _of(kind, given[name], name, base)
    if "peers" in given:
        given["peers"] = tuple(_peer(one) for one in _list(given["peers"], "peers"))
    return Config(**given)


def check_known(said: Mapping[Any, object], known: Collection[str], where: str) -> None:
    """Refuse names that nobody knows, with what they may have been meant to be."""
    unknown = sorted(str(name) for name in said if name not in known)
    if not unknown:
        return
    came = ", ".join(one if one.isprintable() else show(one) for one in unknown)
    meant = [near for one in unknown for near in close_to(one, known)]
    perhaps = f" (perhaps {', '.join(dict.fromkeys(meant))}?)" if meant else ""
    raise InvalidValue(where, f"only {', '.join(sorted(known))}", f"{came}{perhaps}")


def close_to(word: str, known: Collection[str]) -> list[str]:
    """What may have been meant by a word: one that is known, or none."""
    # Comparing takes the product of the lengths, and nobody has meant anything by a long one.
    return get_close_matches(word, sorted(known), n=1) if len(word) <= 80 else []


def _file(said: object, where: str, base: Path) -> Path:
    if not isinstance(said, str) or not said or "\0" in said:
        raise InvalidValue(where, "the name of a file", show(said))
    return base / said


def _journal(said: object, base: Path) -> str:
    wanted = "the name of a file, postgresql://… or memory:"
    if not isinstance(said, str) or not said or "\0" in said:
        raise InvalidValue("journal", wanted, show(said))
    is_url = "://" in said
    known = said.startswith(("postgresql://", "postgres://", "sqlite:///"))
    if (is_url and not known) or (not is_url and has_password(said)):
        raise InvalidValue("journal", wanted, show(without_password(said)))
    return said if ":" in said else str(base / said)


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
    check_known(said, {one.name for one in fields(kind)}, where)
    needed = [one.name for one in fields(kind) if one.default is one.default_factory is MISSING]
    if missing := [name for name in needed if name not in said]:
        raise InvalidValue(where, f"at least {', '.join(needed)}", f"no {', '.join(missing)}")
    types = {one.name: str(one.type).partition(" |")[0] for one in fields(kind)}
    return kind(
        **{name: _field(types[name], one, f"{where}.{name}", base) for name, one in said.items()}
    )


def _field(kind: str, said: object, where: str, base: Path) -> object:
    """What a field of a kind is, as it was said; refused if it is nothing of that kind."""
    wanted, kinds = _KINDS[kind]
    if not isinstance(said, kinds) or (isinstance(said, bool) and kinds is not bool):
        raise InvalidValue(where, wanted, show(said))
    if kind == "Path":
        return _file(said, where, base)
    if isinstance(said, float):
        # 1e5 is how people write 100000, and what counts must be counted in whole numbers.
        if not math.isfinite(said) or (kind == "int" and not said.is_integer()):
            raise InvalidValue(where, wanted, show(said))
        return int(said) if kind == "int" else said
    return _texts(said, where) if isinstance(said, list) else said


def _texts(said: list[Any], where: str) -> tuple[str, ...]:
    if not all(isinstance(one, str) for one in said):
        raise InvalidValue(where, "a list of texts", show(said))
    return tuple(said)


_KINDS: Mapping[str, tuple[str, Any]] = {
    "str": ("a text", str),
    "int": ("a whole number", int | float),
    "float": ("a number", int | float),
    "bool": ("true or false", bool),
    "Path": ("the name of a file", str),
    "tuple[str, ...]": ("a list of texts", list),
}
"""What a field of a kind is given by, and what that is called."""


def _peer(said: object) -> Peer:
    if not isinstance(said, Mapping) or "name" not in said:
        raise InvalidValue("peers", "a name, a role, and an address if it is dialled", show(said))
    check_known(said, ("name", "address", "role", "certificate"), "peers")
    name, certificate = said["name"], said.get("certificate", "")
    for where, one in (("peers.name", name), ("peers.certificate", certificate)):
        if not isinstance(one, str):
            raise InvalidValue(where, "a text", show(one))
    check_name(name, "peers.name")  # Before it is named where its address is refused.
    address = said.get("address")
    return Peer(
        name,
        role_of(said.get("role", "peer"), f"peers.{name}.role"),
        None if address is None else Address.of(address, f"peers.{name}.address"),
        certificate,
    )


def role_of(said: object, where: str = "role") -> Role:
    """The role that a word names."""
    if not isinstance(said, str) or said not in tuple(Role):
        raise InvalidValue(where, ", ".join(Role), show(said))
    return Role(said)
