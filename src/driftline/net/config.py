"""How is a broker configured? A TOML file, then the environment, then what the command line says.

    name = "london"
    listen = "127.0.0.1:7400"          # and 127.0.0.1:0 takes any port that is free
    journal = "london.journal"         # or postgresql://…, or "memory:" for none
    health = "127.0.0.1:7480"          # where /health answers; none without it
    advertised = false                 # may parties publish only what they advertise?

    [tls]
    certificate = "london.pem"
    key = "london.key"
    authority = "ca.pem"               # who may have signed the certificates of brokers we dial

    [[peers]]
    name = "paris"
    address = "paris.example.org:7400"
    role = "peer"                      # peer, master (it is above us), client (below), mesh

    [limits]
    rate = 50000

Every setting outside of tables can come from the environment too: `DRIFTLINE_NAME`,
`DRIFTLINE_LISTEN` and so on.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from driftline.broker.links import Role
from driftline.errors import CannotListen, FileRefused, InvalidValue
from driftline.model.value import show
from driftline.net.limits import Limits

PORT = 7400
ENVIRONMENT = "DRIFTLINE_"


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    @classmethod
    def of(cls, text: object, where: str = "address") -> Address:
        """From `host:port`, `host` or `[::1]:port`."""
        if not isinstance(text, str) or not text:
            raise InvalidValue(where, "host:port", show(text))
        host, colon, port = text.rpartition(":")
        if not colon or (":" in host and not host.startswith("[")):
            host, port = text, str(PORT)
            if ":" in host.strip("[]") and not _is_ipv6(host.strip("[]")):
                raise InvalidValue(where, "host:port", show(text))
        if not port.isdecimal() or int(port) > 65_535:
            raise InvalidValue(where, "a port from 0 to 65535", show(port))
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def cannot_listen(at: Address, problem: OSError) -> CannotListen:
    """What the system says to somebody who wants to listen there, without what asyncio adds."""
    number = problem.errno or 0
    # Where a name is looked up, numbers are negative and mean something else.
    return CannotListen(str(at), os.strerror(number).lower() if number > 0 else str(problem))


@dataclass(frozen=True, slots=True)
class Tls:
    """The files that TLS needs; without an authority the system's are trusted."""

    certificate: Path
    key: Path
    authority: Path | None = None

    def server(self) -> ssl.SSLContext:
        """For those who connect here."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _load(context, self.certificate, self.key)
        return context

    def client(self) -> ssl.SSLContext:
        """For brokers that are dialled from here."""
        authority = None if self.authority is None else str(self.authority)
        context = ssl.create_default_context(cafile=authority)
        _load(context, self.certificate, self.key)
        return context


def _load(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as problem:
        raise FileRefused(
            str(certificate), None, f"no certificate with its key: {problem}"
        ) from None


@dataclass(frozen=True, slots=True)
class Peer:
    """A broker to be linked to; without an address it is the other that dials."""

    name: str
    role: Role
    address: Address | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """All that a broker can be told beforehand."""

    name: str = "broker"
    listen: Address = field(default_factory=lambda: Address("127.0.0.1", PORT))
    journal: str = "memory:"
    health: Address | None = None
    advertised: bool = False
    tls: Tls | None = None
    peers: tuple[Peer, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable() or len(self.name.encode()) > 255:
            raise InvalidValue("name", "1 to 255 bytes that can be printed", show(self.name))
        names = [peer.name for peer in self.peers]
        if len(set(names)) < len(names) or self.name in names:
            raise InvalidValue("peers", "other brokers, each once", ", ".join(names))


def read_config(
    path: Path | None,
    given: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """The configuration of a file, changed by the environment, changed by what is given."""
    said: dict[str, Any] = {} if path is None else _read(path)
    base = Path() if path is None else path.parent
    found = os.environ if environment is None else environment
    for one in fields(Config):
        word = found.get(f"{ENVIRONMENT}{one.name.upper()}")
        if word is not None and one.name not in ("tls", "peers", "limits"):
            said[one.name] = word
    said.update({name: value for name, value in (given or {}).items() if value is not None})
    try:
        return config_of(said, base)
    except InvalidValue as problem:
        if path is None:
            raise
        raise FileRefused(str(path), None, str(problem)) from None


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
    for name in ("name", "journal"):
        if name in given and not isinstance(given[name], str):
            raise InvalidValue(name, "a text", show(given[name]))
    for name in ("listen", "health"):
        if name in given:
            given[name] = Address.of(given[name], name) if given[name] else None
    if "advertised" in given:
        given["advertised"] = _flag(given["advertised"], "advertised")
    if "tls" in given:
        given["tls"] = _tls(given["tls"], base)
    if "peers" in given:
        given["peers"] = tuple(_peer(one) for one in _list(given["peers"], "peers"))
    if "limits" in given:
        given["limits"] = _of(Limits, given["limits"], "limits")
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


def _of(kind: type[Any], said: object, where: str) -> Any:
    """A record of a table whose names are its fields."""
    if not isinstance(said, Mapping):
        raise InvalidValue(where, "a table", show(said))
    known = {one.name for one in fields(kind)}
    if unknown := said.keys() - known:
        wanted = f"only {', '.join(sorted(known))}"
        raise InvalidValue(where, wanted, ", ".join(sorted(map(str, unknown))))
    return kind(**said)


def _tls(said: object, base: Path) -> Tls:
    names = {"certificate", "key", "authority"}
    if not isinstance(said, Mapping) or not {"certificate", "key"} <= said.keys() <= names:
        raise InvalidValue("tls", "a certificate and a key, perhaps an authority", show(said))
    return Tls(**{name: base / str(path) for name, path in said.items()})


def _peer(said: object) -> Peer:
    names = {"name", "address", "role"}
    if not isinstance(said, Mapping) or not {"name"} <= said.keys() <= names:
        raise InvalidValue("peers", "a name, a role, and an address if it is dialled", show(said))
    address = said.get("address")
    return Peer(
        str(said["name"]),
        role_of(said.get("role", "peer")),
        None if address is None else Address.of(address, f"address of {said['name']}"),
    )


def role_of(said: object) -> Role:
    """The role that a word names."""
    if not isinstance(said, str) or said not in tuple(Role):
        raise InvalidValue("role", ", ".join(Role), show(said))
    return Role(said)
