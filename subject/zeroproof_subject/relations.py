"""Relations that need no plain PyTorch: a program and its twin on one engine, compared with each other."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from zeroproof_subject.compare import key_of, short
from zeroproof_subject.engine import View
from zeroproof_subject.pool import Pool, RunResult
from zeroproof_subject.program import Program, parse
from zeroproof_subject.rank import EngineChoice

STATES = ("gradients", "parameters", "optimizer_state")
FROZEN = {"name": "zp_frozen", "linear": {"inputs": 1, "outputs": 1, "trained": "frozen"}}
LOSS_FACTOR = 64.0
SMALL_BUCKET = 2  # elements
DDP_BUCKETS = {"bucket_bytes": 1 << 20}  # one for all


def same(document: dict[str, Any]) -> dict[str, Any]:
    """The program as it is."""
    return document


def with_frozen_parameter(document: dict[str, Any]) -> dict[str, Any]:
    """One more module, which no gradient reaches."""
    for model in document["models"]:
        model["body"].append(FROZEN)
    return document


def with_small_buckets(document: dict[str, Any]) -> dict[str, Any]:
    """Or with those of the default, where they are small."""
    zero = document.setdefault("config", {}).setdefault("zero_optimization", {})
    if zero.pop("reduce_bucket_size", None) is None:
        zero["reduce_bucket_size"] = SMALL_BUCKET
    return document


def checkpoints_of(modules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The members of all checkpoints, inner ones as well."""
    found = []
    for module in modules:
        found += [module["checkpoint"]] if "checkpoint" in module else []
        (kind,) = module.keys() - {"name"}
        found += checkpoints_of(module[kind].get("body", []))
    return found


def with_other_checkpoints(document: dict[str, Any]) -> dict[str, Any]:
    """Reentrant ones for those that are not."""
    for model in document["models"]:
        for members in checkpoints_of(model["body"]):
            members["is_reentrant"] = not members.get("is_reentrant", True)
    return document


@dataclass(frozen=True)
class Relation:
    """What a twin is, and what its ranks have to see as the program's do."""

    name: str
    applies: Callable[[Program], bool]
    document: Callable[[dict[str, Any]], dict[str, Any]] = same
    options: dict[str, Any] = field(default_factory=dict)
    view: View = View()
    sees: tuple[str, ...] = (*STATES, "loss")


def relations_of(engine: str) -> list[Relation]:
    """Those that say something of an engine."""
    buckets = {"ddp": Relation("buckets", always, options=DDP_BUCKETS)}
    if engine == "deepspeed":
        buckets["deepspeed"] = Relation("buckets", always, with_small_buckets)
    return [
        Relation("the same again", always),
        Relation("ranks in another order", has_like_ranks, view=View(shift=1)),
        Relation("loss * 64", has_linear_loss, view=View(loss_factor=LOSS_FACTOR), sees=("gradients",)),
        Relation("one more frozen parameter", always, with_frozen_parameter, sees=STATES),
        Relation("the other checkpoint", has_checkpoint, with_other_checkpoints),
        *([buckets[engine]] if engine in buckets else []),
    ]


def always(program: Program) -> bool:
    """Of every program."""
    return True


def has_linear_loss(program: Program) -> bool:
    """Other dtypes overflow, and tiles begin backwards of their own."""
    parts = [part for model in program.models.values() for part in model.parts()]
    return program.dtype == "fp32" and all(part.kind != "tiled" for part in parts)


def has_like_ranks(program: Program) -> bool:
    """Two, whose sums are the same in any order, and which begin with the same weights."""
    return program.ranks == 2 and not program.ranks_differ


def has_checkpoint(program: Program) -> bool:
    """In the body of a model, where alone a twin has other ones."""
    return any(checkpoints_of(model["body"]) for model in program.document["models"])


def disagreement(result: RunResult) -> str:
    """Where ranks saw different numbers that are to be the same on all; else an empty text."""
    if any(seen is None for seen in result.ranks):
        return ""
    for observations in zip(*result.ranks, strict=False):
        first = observations[0]
        is_shared = first["what"] in STATES and all(key_of(it) == key_of(first) for it in observations)
        if is_shared and any(it["values"] != first["values"] for it in observations):
            return f"{first['at']}, {first['what']}: ranks disagree"
    return ""


def violation(relation: Relation, program: RunResult, twin: RunResult) -> str:
    """Where the twin's ranks saw something else; else an empty text."""
    if program.status != twin.status:
        return f"{program.status}, the twin: {twin.status}"
    count = len(program.ranks)
    for rank in range(count):
        seen, other = program.ranks[rank], twin.ranks[(rank + relation.view.shift) % count]
        if seen is None or other is None:
            continue
        for one, two in zip(seen, other, strict=False):
            if text := difference(relation, one, two):
                return f"rank {rank} at {one['at']}, {one['what']}: {text}"
        if len(seen) != len(other):
            return f"rank {rank}: the program or its twin ended early"
    return ""


def difference(relation: Relation, one: dict[str, Any], two: dict[str, Any]) -> str:
    """Of two observations, in what both have."""
    if key_of(one) != key_of(two):
        return f"the twin has {two['what']} at {two['at']}"
    if one["what"] not in relation.sees or one["values"] is None or two["values"] is None:
        return ""
    factor = relation.view.loss_factor
    for name in one["values"].keys() & two["values"].keys():
        due = [number * factor for number in one["values"][name] or []]
        got = two["values"][name] or []
        if due != got and due == due:
            return f"{name} is {short(due)}, of the twin {short(got)}"
    return ""


class Relations:
    """Runs programs and their twins on one engine, and counts what is violated."""

    def __init__(self, subject: Any) -> None:
        self.subject = subject
        self.relations = relations_of(subject.choice.name)
        self.pools: dict[str, Pool] = {}
        self.pairs: Counter[str] = Counter()
        self.found: dict[str, list[tuple[int, str]]] = {}  # by relation: cases, and what was seen

    def run(self, document: dict[str, Any], case: int) -> list[str]:
        """The relations that a program violates. Raises NotAProgram."""
        program = parse(document)
        result = self.subject.run(document)
        violated = {"ranks agree": disagreement(result)}
        self.pairs["ranks agree"] += 1
        for relation in self.relations:
            if relation.applies(program):
                self.pairs[relation.name] += 1
                violated[relation.name] = violation(relation, result, self.twin(relation, document))
        names = [name for name, text in violated.items() if text]
        for name in names:
            self.found.setdefault(name, []).append((case, violated[name]))
        return names

    def twin(self, relation: Relation, document: dict[str, Any]) -> RunResult:
        """What the twin's ranks saw."""
        choice = self.subject.choice
        pool = self.subject.pool
        if relation.options:
            options = tuple(sorted({**self.subject.options, **relation.options}.items()))
            cases = self.subject.module.CASES_OF_A_GROUP
            pool = self.pools.setdefault(relation.name, Pool(EngineChoice(choice.name, options), cases))
        twin = relation.document(copy.deepcopy(document))
        return pool.run(twin, parse(twin).ranks, self.subject.truth, relation.view)

    def text(self) -> str:
        """A line a relation."""
        lines = []
        for name, count in self.pairs.items():
            found = self.found.get(name, [])
            example = f"; case {found[0][0]}: {found[0][1]}" if found else ""
            lines.append(f"{len(found):5} of {count:5}  {name}{example}")
        return "\n".join(lines)

    def end(self) -> None:
        """Ends all processes."""
        for pool in self.pools.values():
            pool.end()
        self.subject.end()
