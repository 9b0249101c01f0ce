"""What a program did before a place: the statement before it, and features of the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from zeroproof_subject.program import Part, Program


# Some parameters have no gradient of this forward or micro-batch.
PARTIAL = "part of the model"


@dataclass(frozen=True)
class Done:
    """A statement, where it stands, and the kinds of the blocks around it."""

    place: str  # "body/3/block/0/step"
    part: Part
    blocks: tuple[str, ...]


def statements(program: Program) -> Iterator[Done]:
    """All statements, in the order of the document. Bodies of hooks are left out."""
    yield from _statements(program.body, "body", ())


def _statements(body: tuple[Part, ...], place: str, blocks: tuple[str, ...]) -> Iterator[Done]:
    for index, part in enumerate(body):
        at = f"{place}/{index}/{part.kind}"
        yield Done(at, part, blocks)
        around = (*blocks, part["kind"]) if part.kind == "block" else blocks
        yield from _statements(part.body, at, around)


def until(program: Program, at: str) -> list[Done]:
    """The statements before and at a place; all of them, where the place is no statement."""
    found: list[Done] = []
    for done in statements(program):
        found.append(done)
        if at == done.place:
            break
        # A place in a hook of a forward.
        if done.part.kind == "forward" and at.startswith(done.place + "/"):
            break
    return found


@dataclass
class Forward:
    """One forward of an engine, and what became of it."""

    engine: str
    blocks: tuple[str, ...]
    backwards: int = 0
    is_kept: bool = False  # a backward kept its graph
    is_open: bool = True  # no backward so far
    is_of_module: bool = False  # without the engine's own forward


@dataclass
class Window:
    """What happened to the gradients of one engine since its last update."""

    kinds: list[str] = field(default_factory=list)  # "backward", "no_sync backward", "zero_grad"
    features: set[str] = field(default_factory=set)
    backwards_of_step: int = 0  # since the last step(), which need not end a window
    steps: int = 0
    backwards_of_forward: int = 0  # since the last forward


class History:
    """Walks the statements before a place. `features` has the names that known findings use.

    A feature of a statement is of the window in which the place is; "ever NAME" is of the whole
    program before the place. Features of models and of the configuration hold everywhere.
    """

    def __init__(self, program: Program, at: str, engine: str = "") -> None:
        self.program = program
        self.values: dict[str, tuple[Forward, ...]] = {}
        self.windows = {spec.name: Window() for spec in program.engines}
        self.forwards: list[Forward] = []
        self.ever: set[str] = set()
        parts = [part for model in program.models.values() for part in model.parts()]
        self.has_heads = any(len(model.heads) > 1 for model in program.models.values())
        self.has_experts = any(part.kind == "experts" for part in parts)
        self.ends: list[str] = []  # engines whose window ends at the next statement
        self.done = until(program, at)
        for done in self.done:
            self._end_windows()
            if self._is_refused(done):
                self.ever.add("refused statement")
                continue
            do = getattr(self, "_do_" + done.part.kind, None)
            if do is not None:
                do(done.part, done.blocks)
        names = list(self.windows)
        self.engine = engine or (self._engine_of(self.done[-1].part) if self.done else "")
        self.window = self.windows.get(self.engine or (names[0] if names else ""), Window())

    @property
    def before(self) -> str:
        """What happened last to gradients, before the place."""
        kinds = self.window.kinds
        last = self.done[-1] if self.done and not self._is_refused(self.done[-1]) else None
        is_at_itself = last is not None and last.part.kind in ("backward", "zero_grad")
        kinds = kinds[:-1] if is_at_itself else kinds
        return kinds[-1] if kinds else "no event"

    @property
    def features(self) -> frozenset[str]:
        """Of the window, of all statements before the place, of models and configuration."""
        ever = {f"ever {name}" for name in self.ever}
        return frozenset(self.window.features | ever | set(features_of_job(self.program)))

    def _is_refused(self, done: Done) -> bool:
        return done.place.rpartition("/")[0] in self.program.refusals

    def _engine_of(self, part: Part) -> str:
        if part["engine"]:
            return part["engine"]
        forwards = self.values.get(part["value"] or "", ())
        return forwards[0].engine if forwards else ""

    def _add(self, engine: str, *features: str) -> None:
        self.ever.update(features)
        if engine in self.windows:
            self.windows[engine].features.update(features)

    def _end_windows(self) -> None:
        for engine in self.ends:
            self.ever.add("earlier window")
            left = self.windows[engine].backwards_of_forward
            self.windows[engine] = Window(backwards_of_forward=left)
        self.ends.clear()

    # --- statements ---

    def _do_forward(self, it: Part, blocks: tuple[str, ...]) -> None:
        engine = it["engine"]
        if it["mode"] != "train":
            if any(one.engine == engine and one.is_open for one in self.forwards):
                self._add(engine, "evaluation between forward and backward")
            return
        if any(one.engine == engine and one.is_open for one in self.forwards):
            self._add(engine, "two open forwards")
        if engine in self.windows:
            self.windows[engine].backwards_of_forward = 0
        if it["skips"]:
            self._add(engine, "skipped modules", PARTIAL)
        if any(skip.get("rank") is not None for skip in it["skips"]):
            self._add(engine, "skipped modules on one rank")
        if self.has_heads or self.has_experts:
            self._add(engine, PARTIAL)
        for hook in it.hooks:
            self._add(engine, f"hook at {hook.at}")
            if any(part.kind == "raise" for part in hook.body):
                self._add(engine, "hook raises")
        forward = Forward(engine, blocks)
        self.forwards.append(forward)
        for name in ("", ".1", ".2", ".3", ".h"):
            self.values[it["as"] + name] = (forward,)

    def _do_call_module(self, it: Part, blocks: tuple[str, ...]) -> None:
        self._add(it["engine"], "module called past the engine", PARTIAL)
        self.values[it["as"]] = (Forward(it["engine"], blocks, is_of_module=True),)

    def _do_transform(self, it: Part, blocks: tuple[str, ...]) -> None:
        self._add(it["engine"], "transform")

    def _do_sum(self, it: Part, blocks: tuple[str, ...]) -> None:
        parts = [one for name in it["values"] for one in self.values.get(name, ())]
        self.values[it["as"]] = tuple({id(one): one for one in parts}.values())
        if sum(not one.is_of_module for one in self.values[it["as"]]) > 1:
            self._add(parts[0].engine, "sum of forwards")
            if len({one.engine for one in parts}) > 1:
                self._add(parts[0].engine, "sum over engines")

    def _do_scale(self, it: Part, blocks: tuple[str, ...]) -> None:
        self.values[it["as"]] = self.values.get(it["value"], ())

    def _do_backward(self, it: Part, blocks: tuple[str, ...]) -> None:
        forwards = self.values.get(it["value"], ())
        for engine in sorted({one.engine for one in forwards} | ({it["engine"]} - {None, ""})):
            if engine in self.windows:
                self._backward_of(engine, it, blocks, forwards)
        for one in forwards:
            one.backwards += 1
            one.is_kept = one.is_kept or bool(it["retain_graph"])
            one.is_open = False

    def _backward_of(
        self, engine: str, it: Part, blocks: tuple[str, ...], forwards: tuple[Forward, ...]
    ) -> None:
        window = self.windows[engine]
        is_alone = "no_sync" in blocks
        block = next((kind for kind in reversed(blocks) if kind in ("no_sync", "coalesce")), "")
        before = set(window.kinds)
        is_of_sum = sum(not one.is_of_module for one in forwards) > 1
        window.kinds.append(f"{block} backward".strip())
        window.backwards_of_step += 1
        found = {
            "two backwards before a step": window.backwards_of_step > 1,
            "two backwards of a forward": any(one.backwards > 0 for one in forwards),
            "kept graph": bool(it["retain_graph"]) or any(one.is_kept for one in forwards),
            "created graph": bool(it["create_graph"]),
            "undivided backward": not it["scale_wrt_gas"],
            "backward of the tensor": not it["engine"],
            "tensor backward of a sum": not it["engine"] and is_of_sum,
            "engine backward of a sum": bool(it["engine"]) and is_of_sum,
            "tensor backward after another without a forward": not it["engine"]
            and window.backwards_of_forward > 0,
            "tensor backward of a forward again": not it["engine"]
            and any(one.backwards > 0 for one in forwards),
            "forward in no_sync, backward outside": not is_alone
            and any("no_sync" in one.blocks for one in forwards),
            "no_sync backward": is_alone,
            "coalesced backward": "coalesce" in blocks,
            "backward after a coalesced one": block == "" and "coalesce backward" in before,
            "backward after no_sync": not is_alone and "no_sync backward" in before,
            "backward after zero_grad": "zero_grad" in before,
            "backward in a window with none before": not any("backward" in it for it in before),
        }
        window.backwards_of_forward += 1
        self._add(engine, *(name for name, is_so in found.items() if is_so))

    def _do_zero_grad(self, it: Part, blocks: tuple[str, ...]) -> None:
        window = self.windows[it["engine"]]
        backwards = [kind for kind in window.kinds if "backward" in kind]
        if backwards:
            self._add(it["engine"], "zero_grad after a backward")
            self.ever.add("earlier window")
        if backwards[-1:] == ["no_sync backward"]:
            self._add(it["engine"], "zero_grad after no_sync")
        window.backwards_of_step = 0  # what it dropped is not stepped
        window.kinds.append("zero_grad")

    def _do_step(self, it: Part, blocks: tuple[str, ...]) -> None:
        window = self.windows[it["engine"]]
        if window.backwards_of_step == 0:
            self._add(it["engine"], "micro-batch without a backward", PARTIAL)
        window.steps += 1
        window.backwards_of_step = 0
        steps = self.program.setting("gradient_accumulation_steps", 1)
        is_managed = self.program.setting("managed_gradient_accumulation", True)
        if is_managed and window.steps % steps != 0:
            return
        self.ends.append(it["engine"])
        backwards = [kind for kind in window.kinds if "backward" in kind]
        if backwards[-1:] == ["no_sync backward"]:
            self._add(it["engine"], "last backward in no_sync")

    def _do_set_boundary(self, it: Part, blocks: tuple[str, ...]) -> None:
        self._add(it["engine"], "boundary set by the user")

    def _do_freeze(self, it: Part, blocks: tuple[str, ...]) -> None:
        self._add(it["engine"], "requires_grad changed")

    def _do_drop(self, it: Part, blocks: tuple[str, ...]) -> None:
        for one in self.values.get(it["value"], ()):
            one.is_open = False

    def _do_save(self, it: Part, blocks: tuple[str, ...]) -> None:
        self._add(it["engine"], "save")

    def _do_load(self, it: Part, blocks: tuple[str, ...]) -> None:
        self._add(it["engine"], "load")

    def _do_block(self, it: Part, blocks: tuple[str, ...]) -> None:
        if it["kind"] == "coalesce":
            self._add(it["engine"], "coalesce block")

    def _do_raise(self, it: Part, blocks: tuple[str, ...]) -> None:
        self.ever.add("raise")


CONFIG_FEATURES: dict[str, tuple[str, Any]] = {
    "overlap_comm": ("zero_optimization/overlap_comm", False),
    "optimizer on CPU": ("zero_optimization/offload_optimizer/device", "none"),
    "fp16": ("fp16/enabled", False),
    "bf16": ("bf16/enabled", False),
    "static loss scale": ("fp16/loss_scale", 0),
    "float32 accumulation": ("data_types/grad_accum_dtype", None),
    "gradients not contiguous": ("zero_optimization/contiguous_gradients", True),
    "no reduce_scatter": ("zero_optimization/reduce_scatter", True),
    "clipping": ("gradient_clipping", 0.0),
    "SGD": ("optimizer/type", "Adam"),
}


def features_of_job(program: Program) -> Iterator[str]:
    """Of models, world and configuration."""
    for model in program.models.values():
        yield f"outputs in a {model.container}"
        if model.heads:
            yield "heads"
        if model.returns_activations:
            yield "activations returned"
        for part in model.parts():
            yield part.kind
            if part.kind == "checkpoint" and part["is_reentrant"]:
                yield "reentrant checkpoint"
            if part.kind == "custom" and len(part["shape"]) == 0:
                yield "scalar parameter"
            if part["trained"] in ("frozen", "bias_only"):
                yield "frozen parameter"
    if any(spec.parameter_groups > 1 for spec in program.engines):
        yield "parameter groups"
    if not program.has_callbacks:
        yield "no callback after a backward"
    yield "several ranks" if program.ranks > 1 else "one rank"
    if program.setting("gradient_accumulation_steps", 1) > 1:
        yield "several micro-batches"
    if not program.setting("managed_gradient_accumulation", True):
        yield "unmanaged accumulation"
    if program.ranks > 1 and program.setting("gradient_predivide_factor", 1.0) == program.ranks:
        yield "predivided by the number of ranks"
    for name, (pointer, default) in CONFIG_FEATURES.items():
        if program.setting(pointer, default) != default:
            yield name
