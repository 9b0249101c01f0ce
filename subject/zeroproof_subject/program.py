"""A program of the schema zeroproof.program/1 as Python values (docs/reference/program.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "zeroproof.program/1"

# What a document leaves out: members with their default value. A member of no row is None.
STATEMENT_DEFAULTS: dict[str, dict[str, Any]] = {
    "forward": {"mode": "train", "inputs_need_grad": False, "skips": (), "around": "none"},
    "backward": {
        "engine": "",
        "retain_graph": False,
        "create_graph": False,
        "scale_wrt_gas": True,
        "keeps_dimension": False,
    },
    "scale": {"value": ""},
    "foreign_backward": {"throws": False},
    "freeze": {"is_trained": False},
    "set_boundary": {"is_boundary": True},
}
MODULE_DEFAULTS: dict[str, dict[str, Any]] = {
    "experts": {"experts": 2},
    "linear": {"has_bias": False, "trained": "all", "input_needs_grad": False, "dimensions": 2},
    "custom": {"shape": (2,), "weights": 1, "trained": "all"},
    "own_weight": {"elements": 3},
    "checkpoint": {"is_reentrant": True},
    "external_use": {"when": "used_here", "is_registered": False},
}


class NotAProgram(ValueError):
    """The document is no program of this version of the language."""


@dataclass(frozen=True)
class Part:
    """A statement or a module: its kind, and the members that the document gives."""

    kind: str
    members: dict[str, Any]
    defaults: dict[str, Any]
    name: str = ""  # of a module
    body: tuple[Part, ...] = ()
    hooks: tuple[Hook, ...] = ()  # of a forward

    def __getitem__(self, member: str) -> Any:
        return self.members.get(member, self.defaults.get(member))


@dataclass(frozen=True)
class Hook:
    """Code of the user inside a forward or its backward."""

    at: str
    module: str
    body: tuple[Part, ...]


@dataclass(frozen=True)
class Model:
    """A body of modules, then heads, each of which makes a loss."""

    name: str
    body: tuple[Part, ...]
    heads: tuple[tuple[Part, ...], ...] = ()
    container: str = "tensors"
    has_constant_output: bool = False
    returns_activations: bool = False
    added_to_loss: float = 0.0

    def parts(self) -> Iterator[Part]:
        """Every module, a parent before its children, in the order of forward."""
        for part in (*self.body, *(module for head in self.heads for module in head)):
            yield from walk(part)


@dataclass(frozen=True)
class EngineSpec:
    """initialize(model)."""

    name: str
    model: str
    parameter_groups: int = 1


@dataclass(frozen=True)
class Program:
    """A training job as data."""

    ranks: int
    ranks_differ: bool
    config: dict[str, Any]
    seed: int
    models: dict[str, Model]
    engines: tuple[EngineSpec, ...]
    body: tuple[Part, ...]
    has_callbacks: bool
    refusals: dict[str, str]  # of statements that the engine must refuse: the error's name, by place
    document: dict[str, Any] = field(repr=False)

    @property
    def dtype(self) -> str:
        """Of parameters in forward and backward."""
        names = [name for name in ("fp16", "bf16") if self.setting(f"{name}/enabled", False)]
        return names[0] if names else "fp32"

    def setting(self, pointer: str, default: Any) -> Any:
        """The value of a key of the configuration, as "zero_optimization/stage"."""
        value: Any = self.config
        for key in pointer.split("/"):
            if not isinstance(value, dict) or key not in value:
                return default
            value = value[key]
        return value


def walk(part: Part) -> Iterator[Part]:
    """The part and all parts of its body."""
    yield part
    for below in part.body:
        yield from walk(below)


def parse(document: dict[str, Any]) -> Program:
    """Reads a document. Raises NotAProgram."""
    if document.get("schema") != SCHEMA:
        raise NotAProgram(f"schema is {document.get('schema')!r}; give {SCHEMA!r}")
    try:
        return _program(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise NotAProgram(f"no program: {error!r}") from error


def _program(document: dict[str, Any]) -> Program:
    world = document.get("world", {})
    return Program(
        ranks=world.get("ranks", 1),
        ranks_differ=world.get("ranks_differ", False),
        config=document.get("config", {}),
        seed=document.get("data", {}).get("seed", 0),
        models={model["name"]: _model(model) for model in document["models"]},
        engines=tuple(_engine(engine) for engine in document["engines"]),
        body=_statements(document["body"]),
        has_callbacks=world.get("autograd", "full") == "full",
        refusals=document.get("refusals", {}),
        document=document,
    )


def _model(document: dict[str, Any]) -> Model:
    plain = {
        key: document[key]
        for key in ("container", "has_constant_output", "returns_activations", "added_to_loss")
        if key in document
    }
    return Model(
        name=document["name"],
        body=_modules(document["body"]),
        heads=tuple(_modules(head) for head in document.get("heads", ())),
        **plain,
    )


def _engine(document: dict[str, Any]) -> EngineSpec:
    return EngineSpec(document["name"], document["model"], document.get("parameter_groups", 1))


def _modules(documents: list[dict[str, Any]]) -> tuple[Part, ...]:
    return tuple(_module(document) for document in documents)


def _module(document: dict[str, Any]) -> Part:
    (kind,) = document.keys() - {"name"}
    members = document[kind]
    body = _modules(members.get("body", []))
    return Part(kind, members, MODULE_DEFAULTS.get(kind, {}), name=document["name"], body=body)


def _statements(documents: list[dict[str, Any]]) -> tuple[Part, ...]:
    return tuple(_statement(document) for document in documents)


def _statement(document: dict[str, Any]) -> Part:
    ((kind, members),) = document.items()
    hooks = tuple(
        Hook(hook["at"], hook.get("module", ""), _statements(hook["body"]))
        for hook in members.get("hooks", ())
    )
    body = _statements(members.get("body", []))
    return Part(kind, members, STATEMENT_DEFAULTS.get(kind, {}), body=body, hooks=hooks)
