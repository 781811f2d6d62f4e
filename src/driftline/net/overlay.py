"""Which brokers, joined how, is an overlay on this machine made of? One TOML file says it.

    journals = "journals"              # a folder for what is durable; without it nothing survives
    advertised = false                 # for all brokers, as are access and the tables but [http]
    access = "access.toml"

    [tls]                              # as in the file of one broker
    authority = "keys/ca.pem"

    [tokens]
    key = "keys/tokens.pub"

    [brokers.london]                   # whatever one broker can be told, but name and peers;
    listen = "127.0.0.1:7400"          # without it, or with port 0: any port that is free

    [brokers.london.tls]               # what it says of a table is added to what all are told
    certificate = "keys/broker-london.pem"
    key = "keys/broker-london.key"

    [brokers.paris.tls]
    certificate = "keys/broker-paris.pem"
    key = "keys/broker-paris.key"

    [[links]]
    between = ["london", "paris"]      # the first dials
    role = "peer"                      # what the second is to the first: peer, master, client, mesh

Paths are looked for from the file's folder on. With an authority each certificate must name its
broker, as those of `driftline secure broker` do, and the host that it listens on. Only `mesh` links
may form a circle: over others an event would come around again.
"""

from __future__ import annotations

import json
import random
import re
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftline.broker.links import Role
from driftline.errors import CannotListen, FileRefused, InvalidValue
from driftline.model.value import show
from driftline.net.address import Address
from driftline.net.config import TABLES, check_known, check_no_password, config_of, placed, role_of
from driftline.net.link import OTHER_END

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# What all brokers can be told at once; where one listens is its own.
_COMMON = ("advertised", "access", *(name for name in TABLES if name != "http"))
_KNOWN = {"journals", "brokers", "links", *_COMMON}
# Below those that systems give to whoever dials: one that is free now is free after a crash too.
_PORTS = range(20_000, 32_000)


@dataclass(frozen=True, slots=True)
class PlannedLink:
    """A link: the first dials the second, which is this to it."""

    dialling: str
    dialled: str
    role: Role

    def __str__(self) -> str:
        return f"{self.dialling} – {self.dialled}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The brokers of an overlay by their names, each as its file would say it, and their links."""

    file: Path
    brokers: dict[str, dict[str, Any]]
    links: tuple[PlannedLink, ...]

    @property
    def is_tls(self) -> bool:
        """Do its brokers speak TLS?"""
        return any("tls" in one for one in self.brokers.values())


def read_plan(file: Path) -> Plan:
    """The overlay that a file says."""
    try:
        said = tomllib.loads(file.read_text())
    except OSError as problem:
        raise FileRefused(str(file), None, problem.strerror or str(problem)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise FileRefused(str(file), None, f"no TOML: {problem}") from None
    except RecursionError:
        raise FileRefused(str(file), None, "no TOML: lists in lists, too deep") from None
    try:
        return _plan(said, file)
    except (InvalidValue, CannotListen) as problem:
        raise FileRefused(str(file), None, str(problem)) from None


def _plan(said: Mapping[str, Any], file: Path) -> Plan:
    check_known(said, _KNOWN, "overlay")
    brokers = said.get("brokers")
    if not isinstance(brokers, Mapping) or not brokers:
        raise InvalidValue("overlay", "tables [brokers.NAME]", show(brokers))
    links = tuple(_link(one, brokers) for one in _list(said.get("links", []), "links"))
    _check_links(links)
    base = file.parent.resolve()
    common = {name: said[name] for name in _COMMON if name in said}
    if "journals" in said and not isinstance(said["journals"], str):
        raise InvalidValue("journals", "a folder", show(said["journals"]))
    folder = base / said["journals"] if "journals" in said else None
    taken = {_listen(one, name).port for name, one in brokers.items()}
    found: dict[str, dict[str, Any]] = {}
    for name, one in brokers.items():
        journal = "memory:" if folder is None else str(folder / f"{name}.journal")
        listen = _listen(one, name)
        if not listen.port:
            listen = Address(listen.host, _free_port(listen.host, taken))
            taken.add(listen.port)
        found[name] = {
            "name": name,
            "journal": journal,
            "health": "127.0.0.1:0",
            **_together(common, one),
            "listen": str(listen),
        }
    for link in links:
        there = {"name": link.dialled, "role": str(link.role)}
        there["address"] = str(Address.of(found[link.dialled]["listen"]).reached)
        here = {"name": link.dialling, "role": str(OTHER_END[link.role])}
        found[link.dialling].setdefault("peers", []).append(there)
        found[link.dialled].setdefault("peers", []).append(here)
    # Paths that hold wherever the file of a broker is written.
    found = {name: placed(one, base) for name, one in found.items()}
    for name, one in found.items():
        try:
            check_no_password(one)
            config_of(one)  # Or it is refused here, and not by a process.
        except InvalidValue as problem:
            where = f"brokers.{name}.{problem.where}"
            raise InvalidValue(where, problem.wanted, problem.came) from None
    return Plan(file, found, links)


def _together(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What a broker is told: all that is its own, and of what is for all brokers the rest."""
    both = {**common, **own}
    for name in TABLES:
        of_all, of_one = common.get(name), own.get(name)
        if isinstance(of_all, Mapping) and isinstance(of_one, Mapping):
            both[name] = {**of_all, **of_one}
    return both


def _list(said: object, where: str) -> list[Any]:
    if not isinstance(said, list):
        raise InvalidValue(where, f"tables [[{where}]]", show(said))
    return said


def _listen(said: object, name: str) -> Address:
    if not _NAME.fullmatch(name):
        raise InvalidValue("brokers", "names of letters, digits, _ . and -", show(name))
    if not isinstance(said, Mapping):
        raise InvalidValue(f"brokers.{name}", "a table", show(said))
    if odd := said.keys() & {"name", "peers"}:
        raise InvalidValue(f"brokers.{name}", "no name and no peers: see links", ", ".join(odd))
    return Address.of(said.get("listen", "127.0.0.1:0"), f"brokers.{name}.listen")


def _link(said: object, brokers: Mapping[str, Any]) -> PlannedLink:
    if not isinstance(said, Mapping) or not {"between"} <= said.keys() <= {"between", "role"}:
        raise InvalidValue("links", "between = [NAME, NAME], and perhaps a role", show(said))
    between = said["between"]
    known = isinstance(between, list) and len(between) == 2 and between[0] != between[1]
    if not known or not all(isinstance(one, str) and one in brokers for one in between):
        wanted = f"two of {', '.join(sorted(brokers))}"
        raise InvalidValue("links.between", wanted, show(between))
    return PlannedLink(between[0], between[1], role_of(said.get("role", "peer"), "links.role"))


def _check_links(links: tuple[PlannedLink, ...]) -> None:
    pairs = [frozenset((one.dialling, one.dialled)) for one in links]
    if len(set(pairs)) < len(pairs):
        raise InvalidValue("links", "one between two brokers", "several")
    group: dict[str, str] = {}

    def of(name: str) -> str:
        while group.setdefault(name, name) != name:
            name = group[name]
        return name

    for link in links:
        if link.role is Role.MESH:
            continue
        a, b = of(link.dialling), of(link.dialled)
        if a == b:
            raise InvalidValue("links", "no circle, unless its role is mesh", str(link))
        group[a] = b


def _free_port(host: str, taken: set[int]) -> int:
    """A port that nobody has."""
    for _ in range(1000):
        port = random.choice(_PORTS)
        if port in taken:
            continue
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as one:
            try:
                one.bind((host, port))
            except OSError as problem:
                why = str(problem)
                continue
        return port
    raise CannotListen(host, why)


def toml_of(said: Mapping[str, Any]) -> str:
    """Settings as a TOML file: plain ones, tables, and lists of tables.

    >>> print(toml_of({"name": "a", "limits": {"rate": 5}, "peers": [{"name": "b"}]}))
    name = "a"
    <BLANKLINE>
    [limits]
    rate = 5
    <BLANKLINE>
    [[peers]]
    name = "b"
    """
    plain = {k: v for k, v in said.items() if not isinstance(v, Mapping | list)}
    parts = [_lines(plain)]
    for name, value in said.items():
        if isinstance(value, Mapping):
            parts.append(f"[{name}]\n{_lines(value)}")
        elif isinstance(value, list):
            parts += [f"[[{name}]]\n{_lines(one)}" for one in value]
    return "\n\n".join(parts)


def _lines(said: Mapping[str, Any]) -> str:
    return "\n".join(f"{name} = {_written(value)}" for name, value in said.items())


def _written(value: object) -> str:
    # As in JSON, but that JSON writes what is beyond 16 bits as two halves, and DEL as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f")
