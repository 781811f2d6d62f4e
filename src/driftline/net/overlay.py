"""Which brokers, joined how, is an overlay on this machine made of? One TOML file says it.

    journals = "journals"              # a folder for what is durable; without it nothing survives
    advertised = false                 # for all brokers, as is [limits]

    [tls]                              # optional; as in the file of one broker
    certificate = "overlay.pem"
    key = "overlay.key"
    authority = "ca.pem"

    [brokers.london]
    listen = "127.0.0.1:7400"          # without it, or with port 0: any port that is free

    [brokers.paris]                    # whatever one broker can be told, but name and peers

    [[links]]
    between = ["london", "paris"]      # the first dials
    role = "peer"                      # what the second is to the first: peer, master, client, mesh

Paths are looked for from the file's folder on. Only `mesh` links may form a circle: over others an
event would come around again.
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
from driftline.net.config import config_of, role_of
from driftline.net.link import OTHER_END

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_KNOWN = {"journals", "advertised", "limits", "tls", "brokers", "links"}
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
    try:
        return _plan(said, file)
    except (InvalidValue, CannotListen) as problem:
        raise FileRefused(str(file), None, str(problem)) from None


def _plan(said: Mapping[str, Any], file: Path) -> Plan:
    if unknown := said.keys() - _KNOWN:
        wanted = f"only {', '.join(sorted(_KNOWN))}"
        raise InvalidValue("overlay", wanted, ", ".join(sorted(unknown)))
    brokers = said.get("brokers")
    if not isinstance(brokers, Mapping) or not brokers:
        raise InvalidValue("overlay", "tables [brokers.NAME]", show(brokers))
    links = tuple(_link(one, brokers) for one in _list(said.get("links", []), "links"))
    _check_links(links)
    base = file.parent.resolve()
    common = {name: said[name] for name in ("advertised", "limits", "tls") if name in said}
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
            **common,
            **one,
            "listen": str(listen),
        }
    for link in links:
        there = {"name": link.dialled, "role": str(link.role)}
        there["address"] = found[link.dialled]["listen"]
        here = {"name": link.dialling, "role": str(OTHER_END[link.role])}
        found[link.dialling].setdefault("peers", []).append(there)
        found[link.dialled].setdefault("peers", []).append(here)
    for one in found.values():
        _with_whole_paths(one, base)
        config_of(one, base)  # Or it is refused here, and not by a process.
    return Plan(file, found, links)


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
    return PlannedLink(between[0], between[1], role_of(said.get("role", "peer")))


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


def _with_whole_paths(said: dict[str, Any], base: Path) -> None:
    """Paths that hold wherever the file of a broker is written."""
    if isinstance(said.get("tls"), Mapping):
        said["tls"] = {name: str(base / str(path)) for name, path in said["tls"].items()}
    if isinstance(said["journal"], str) and ":" not in said["journal"]:
        said["journal"] = str(base / said["journal"])


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
    # A string, a number or a truth value is the same in JSON as in TOML.
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in said.items())
