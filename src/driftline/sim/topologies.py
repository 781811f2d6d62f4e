"""How are brokers joined? The paper's architectures, drawn by chance [SIENA §4]."""

from __future__ import annotations

import random

from driftline.broker.links import Role
from driftline.sim.faults import SECOND
from driftline.sim.overlay import Overlay

TOPOLOGIES = (
    "centralised",
    "hierarchical",
    "acyclic",
    "general",
    "figure 8",
    "figure 9",
    "mixed",
)


def build(overlay: Overlay, topology: str, brokers: int, draw: random.Random) -> None:
    """Brokers, at most so many, and the links of a topology."""
    count = 1 if topology == "centralised" else draw.randrange(2, brokers + 1)
    names = [f"b{at}" for at in range(count)]
    for name in names:
        overlay.broker(name, skew=draw.choice((0, 0, SECOND, 3600 * SECOND)))
    if topology == "hierarchical":
        _tree(overlay, names, Role.MASTER, draw)
    elif topology == "acyclic":
        _tree(overlay, names, Role.PEER, draw)
    elif topology == "general":
        _mesh(overlay, names, draw)
    elif topology == "figure 8":
        # Hierarchies whose roots form a mesh.
        roots = max(1, count // 2)
        _mesh(overlay, names[:roots], draw)
        for at in range(roots, count):
            overlay.link(names[at], draw.choice(names[:at]), Role.MASTER)
    elif topology == "mixed":
        # A tree in which any link may be of any kind.
        for at, name in enumerate(names[1:], 1):
            overlay.link(name, draw.choice(names[:at]), draw.choice(list(Role)))
    elif topology == "figure 9":
        # Meshes whose gateways form a tree.
        near, far = names[: count // 2], names[count // 2 :]
        for cluster in (near, far):
            _mesh(overlay, cluster, draw)
        overlay.link(draw.choice(near), draw.choice(far), Role.PEER)


def _tree(overlay: Overlay, names: list[str], role: Role, draw: random.Random) -> None:
    for at, name in enumerate(names[1:], 1):
        overlay.link(name, draw.choice(names[:at]), role)


def _mesh(overlay: Overlay, names: list[str], draw: random.Random) -> None:
    _tree(overlay, names, Role.MESH, draw)
    linked = set(overlay.links())
    for at, here in enumerate(names):
        for there in names[at + 1 :]:
            if (here, there) not in linked and draw.random() < 0.4:
                overlay.link(here, there, Role.MESH)


def meshed(overlay: Overlay, here: str, there: str, without: tuple[str, str] | None = None) -> bool:
    """Are two members of one mesh, also without some link between them?"""
    queue, seen = [here], {here}
    for near in queue:  # which grows
        for far in overlay.around(near):
            ended = without is not None and {near, far} == set(without)
            if far not in seen and not ended and overlay.role(near, far) is Role.MESH:
                seen.add(far)
                queue.append(far)
    return there in seen
