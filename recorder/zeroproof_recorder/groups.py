"""Process groups: what they are called in a trace."""

from __future__ import annotations

from typing import Any, Optional

import torch.distributed as dist

from .session import Session


class Groups:
    """Names groups by their ranks, so that a group has one name on all of them."""

    def __init__(self, session: Session):
        self._session = session
        self._names: dict[str, str] = {}  # c10d's name -> ours
        self._taken: set[str] = set()
        self._ranks: dict[str, Optional[list[int]]] = {}
        self._undeclared: list[dict[str, Any]] = []

    def name(self, group: Any) -> str:
        """Our name of a group."""
        name = self._names.get(group.group_name)
        return name if name is not None else self._meet(group)

    def global_rank(self, name: str, rank: int) -> int:
        """The rank in the job of a rank of a group."""
        ranks = self._ranks.get(name)
        return ranks[rank] if ranks and 0 <= rank < len(ranks) else rank

    def declare(self) -> None:
        """Writes the records of groups that were met before the recording began."""
        for record in self._undeclared:
            self._session.add(record)
        self._undeclared.clear()

    def _meet(self, group: Any) -> str:
        if group is dist.group.WORLD:
            name, ranks = "world", list(range(dist.get_world_size()))
        else:
            ranks = _ranks(group)
            name = f"g{_ranks_word(ranks)}"
            if name in self._taken:  # c10d's own name is the same on all ranks
                name = f"{name}@{group.group_name}"
        self._taken.add(name)
        self._names[group.group_name] = name
        self._ranks[name] = ranks
        record = {"rec": "group", "name": name, "ranks": ranks, **_described(group)}
        self._undeclared.append({key: value for key, value in record.items() if value is not None})
        if self._session.is_open:
            self.declare()
        return name


def _described(group: Any) -> dict[str, Any]:
    desc = getattr(group, "group_desc", None)
    try:
        backend = str(dist.get_backend(group))
    except (RuntimeError, ValueError, KeyError, AssertionError):  # not registered with c10d
        backend = None
    return {"desc": str(desc) if desc else None, "backend": backend}


def _ranks(group: Any) -> Optional[list[int]]:
    try:
        return dist.get_process_group_ranks(group)
    except (KeyError, RuntimeError, ValueError):  # a group that c10d has not registered
        return None


def _ranks_word(ranks: Optional[list[int]]) -> str:
    if not ranks:
        return "_unknown"
    if len(ranks) > 8:
        return f"{ranks[0]}_{ranks[-1]}x{len(ranks)}"
    return "_".join(map(str, ranks))
