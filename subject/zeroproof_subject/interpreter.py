"""Runs the statements of a program on one rank, and writes down what the rank sees."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from zeroproof_subject import device
from zeroproof_subject.contributions import MOST, Contributions
from zeroproof_subject.engine import Engine, Job
from zeroproof_subject.models import ACTIVATIONS, Root, losses_of
from zeroproof_subject.frames import frame_of
from zeroproof_subject.program import EngineSpec, Hook, Part, Program
from zeroproof_subject.settings import Settings

MakeEngine = Callable[[Job], Engine]


class UserError(Exception):
    """The statement `raise` of a program."""


class Unspecified(Exception):
    """The rest of the program depends on what a backward did before it failed."""


@dataclass
class Trained:
    """An engine, its model, and how many forwards it had."""

    engine: Engine
    model: Root
    forwards: int = 0


@dataclass
class Value:
    """A loss, and the forwards whose graphs it shares."""

    tensor: Tensor
    graphs: frozenset[tuple[str, int]]


@dataclass
class Observation:
    """What a rank saw at a statement."""

    at: str  # "body/3/block/0"
    what: str  # loss, gradients, parameters, optimizer_state, refusal, error
    engine: str = ""
    values: dict[str, Any] | None = field(default_factory=dict)  # None: cannot be read

    def document(self) -> dict[str, Any]:
        """As JSON has it: tensors as lists of numbers."""
        return {"at": self.at, "what": self.what, "engine": self.engine, "values": self.values}


def numbers(tensors: dict[str, Tensor | None]) -> dict[str, list[float] | None]:
    """Tensors as lists of their elements."""
    return {
        name: None if tensor is None else tensor.detach().reshape(-1).tolist()
        for name, tensor in tensors.items()
    }


class Interpreter:
    """One rank of a program. `seen` is complete when run() has returned or raised."""

    def __init__(
        self,
        program: Program,
        rank: int,
        make_engine: MakeEngine,
        loss_factor: float = 1.0,
        is_truth: bool = False,
    ) -> None:
        self.program = program
        self.loss_factor = loss_factor
        self.is_truth = is_truth  # plain PyTorch, which skips what is to be refused
        self.rank = rank
        self.make_engine = make_engine
        self.values: dict[str, Value] = {}
        self.seen: list[Observation] = []
        self.engines: dict[str, Trained] = {}
        self.half_done: set[str] = set()  # engines of which a backward failed since zero_grad()
        self.in_window: set[str] = set()  # engines that may have gradients
        self.saved: dict[tuple[str, str], bool] = {}  # whether in a window, by engine and tag

    def run(self) -> None:
        """Makes the engines, then does the statements. An error of an engine ends the run."""
        at = "engines"
        try:
            for spec in self.program.engines:
                self.engines[spec.name] = self.make(spec)
            with contextlib.suppress(Unspecified):
                self.do_body(self.program.body, "body")
                at = "end"
                self.see_states(at)
        except Exception as error:
            if not self.seen or self.seen[-1].what != "error":
                self.see_error(at, error)
            raise

    def close(self) -> None:
        """Ends the engines."""
        self.values.clear()
        for trained in self.engines.values():
            close = getattr(trained.engine, "close", None)
            if close is not None:
                close()

    # --- engines ---

    def make(self, spec: EngineSpec) -> Trained:
        """An engine around a model of its own."""
        model = Root(self.program.models[spec.model])
        if self.program.ranks_differ and self.rank > 0:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(self.rank / 2)
        job = Job(
            model=model,
            groups=groups_of(model, spec.parameter_groups),
            settings=Settings.of(self.program),
            config=self.program.config,
            rank=self.rank,
            ranks=self.program.ranks,
            has_callbacks=self.program.has_callbacks,
        )
        return Trained(self.make_engine(job), model)

    # --- statements ---

    def do_body(self, body: tuple[Part, ...], place: str) -> None:
        """Each in its turn; the first error is seen where it happened."""
        for index, statement in enumerate(body):
            at = f"{place}/{index}"
            if at in self.program.refusals:
                self.do_refused(statement, at)
                continue
            try:
                getattr(self, "do_" + statement.kind)(statement, f"{at}/{statement.kind}")
            except (UserError, Unspecified):
                raise
            except Exception as error:
                if not self.seen or self.seen[-1].what != "error":
                    self.see_error(f"{at}/{statement.kind}", error)
                raise

    def do_refused(self, it: Part, at: str) -> None:
        """What the engine must refuse. The truth goes on without it."""
        is_refused, before = self.is_truth, len(self.seen)
        if not self.is_truth:
            try:
                getattr(self, "do_" + it.kind)(it, f"{at}/{it.kind}")
            except Exception:
                is_refused = True
        del self.seen[before:]  # what an engine shows before it refuses
        named = {self.program.refusals[at]: [float(is_refused)]}
        self.seen.append(Observation(f"{at}/{it.kind}", "refusal", it["engine"] or "", named))

    def do_forward(self, it: Part, at: str) -> None:
        """Values are the losses and the activations."""
        trained = self.engines[it["engine"]]
        graph = (it["engine"], trained.forwards)
        trained.forwards += 1
        data = Contributions(
            self.program.seed,
            *graph,
            self.rank,
            expert=self.expert_of(it),
            skips=frozenset(skip["module"] for skip in it["skips"] if self.is_here(skip)),
            most=MOST[self.program.dtype],
            watch=HookWatch(self, it.hooks, at) if it.hooks else None,
        )
        inputs = self.zeros(requires_grad=it["inputs_need_grad"])
        is_training = it["mode"] == "train"
        with contextlib.nullcontext() if is_training else torch.no_grad():
            outputs = trained.engine(inputs, data)
        named = losses_of(trained.model.model, outputs)
        for hook in it.hooks:
            if hook.at == "loss":
                on_gradient(named[""], lambda hook=hook: self.do_body(hook.body, f"{at}/loss"))
        self.seen.append(Observation(at, "loss", it["engine"], numbers(named)))
        for suffix, tensor in named.items():
            self.values[it["as"] + suffix] = Value(tensor, frozenset([graph]))

    def expert_of(self, it: Part) -> int:
        """In stage 3 each rank runs another one, so that every rank waits for all of them."""
        is_sharded = self.program.setting("zero_optimization/stage", 0) == 3
        return (it["expert"] or 0) + (self.rank if is_sharded else 0)

    def is_here(self, skip: dict[str, Any]) -> bool:
        """On this rank."""
        return skip.get("rank") in (None, self.rank)

    def do_sum(self, it: Part, at: str) -> None:
        """Of several values."""
        parts = [self.values[name] for name in it["values"]]
        total = sum(part.tensor.sum() for part in parts)
        graphs = frozenset().union(*(part.graphs for part in parts))
        self.values[it["as"]] = Value(total, graphs)

    def do_scale(self, it: Part, at: str) -> None:
        """engine.scale(value)."""
        value = self.values[it["value"]]
        scaled = self.engines[it["engine"]].engine.scale(value.tensor)
        self.values[it["as"]] = Value(scaled, value.graphs)

    def do_backward(self, it: Part, at: str) -> None:
        """engine.backward, or the tensor's own."""
        engines = {name for name, _ in self.values[it["value"]].graphs}
        self.in_window |= engines
        try:
            self.backward(it)
        except UserError:
            self.half_done |= engines
            raise

    def backward(self, it: Part) -> None:
        """Raises what a hook of the program raises."""
        tensor = self.values[it["value"]].tensor
        if self.loss_factor != 1.0:
            tensor = tensor * self.loss_factor
        if it["keeps_dimension"]:
            tensor = tensor.reshape(1)
        options = {key: True for key in ("retain_graph", "create_graph") if it[key]}
        if not it["engine"]:
            self.tensor_backward(self.values[it["value"]], tensor, options)
            return
        if not it["scale_wrt_gas"]:
            options["scale_wrt_gas"] = False
        self.engines[it["engine"]].engine.backward(tensor, **options)

    def tensor_backward(self, value: Value, tensor: Tensor, options: dict[str, bool]) -> None:
        """By the first engine of the value's graphs; the others hear of it."""
        names = sorted({name for name, _ in value.graphs})
        if not names:
            tensor.backward(**options)
            return
        self.engines[names[0]].engine.tensor_backward(tensor, **options)

    def do_transform(self, it: Part, at: str) -> None:
        """torch.func.grad of the engine's forward, for its inputs."""
        trained = self.engines[it["engine"]]
        graph = (it["engine"], trained.forwards)
        trained.forwards += 1
        most = MOST[self.program.dtype]
        data = Contributions(self.program.seed, *graph, self.rank, most=most)

        def loss_of(inputs: Tensor) -> Tensor:
            return losses_of(trained.model.model, trained.engine(inputs, data))[""]

        gradient = torch.func.grad(loss_of)(self.zeros())
        self.seen.append(Observation(at, "loss", it["engine"], numbers({"": gradient})))

    def do_call_module(self, it: Part, at: str) -> None:
        """A module without the engine's forward."""
        trained = self.engines[it["engine"]]
        graph = (it["engine"], trained.forwards)
        trained.forwards += 1
        most = MOST[self.program.dtype]
        data = Contributions(self.program.seed, *graph, self.rank, most=most)
        node = trained.model.node(it["module"])
        tensor = node(self.zeros(), data, it["module"]).mean()
        self.seen.append(Observation(at, "loss", it["engine"], numbers({"": tensor})))
        self.values[it["as"]] = Value(tensor, frozenset([graph]))

    def do_step(self, it: Part, at: str) -> None:
        """Gradients before it and parameters after it, where a window ends."""
        if it["engine"] in self.half_done:
            raise Unspecified
        trained = self.engines[it["engine"]]
        ends_window = trained.engine.will_step()
        if ends_window:
            self.see(at, "gradients", it["engine"], trained.engine.gradients())
        trained.engine.step()
        if ends_window:
            self.in_window.discard(it["engine"])
        if ends_window:
            self.see(at, "parameters", it["engine"], trained.engine.parameters())

    def do_zero_grad(self, it: Part, at: str) -> None:
        """engine.zero_grad()."""
        self.half_done.discard(it["engine"])
        self.in_window.discard(it["engine"])
        self.engines[it["engine"]].engine.zero_grad()

    def do_set_boundary(self, it: Part, at: str) -> None:
        """Whether the next step() ends a window."""
        self.engines[it["engine"]].engine.set_boundary(it["is_boundary"])

    def do_set_learning_rate(self, it: Part, at: str) -> None:
        """Of one group, or of all."""
        engine = self.engines[it["engine"]].engine
        engine.set_learning_rate(it["group"], it["learning_rate"])

    def do_freeze(self, it: Part, at: str) -> None:
        """requires_grad of a module's parameters."""
        node = self.engines[it["engine"]].model.node(it["module"])
        for parameter in node.parameters(recurse=True):
            parameter.requires_grad_(it["is_trained"])

    def do_drop(self, it: Part, at: str) -> None:
        """All values that share a graph with the named one."""
        if it["rank"] not in (None, self.rank):
            return
        graphs = self.values[it["value"]].graphs
        self.values = {name: it for name, it in self.values.items() if not it.graphs & graphs}

    def do_block(self, it: Part, at: str) -> None:
        """A context manager of the engine."""
        engine = self.engines[it["engine"]].engine
        with getattr(engine, it["kind"])():
            self.do_body(it.body, at)

    def do_save(self, it: Part, at: str) -> None:
        """engine.save_checkpoint(tag)."""
        self.saved[it["engine"], it["tag"]] = it["engine"] in self.in_window
        self.engines[it["engine"]].engine.save(it["tag"])

    def do_load(self, it: Part, at: str) -> None:
        """engine.load_checkpoint(tag). What becomes of half a window no page says."""
        name = it["engine"]
        if name in self.in_window or self.saved.get((name, it["tag"]), True):
            raise Unspecified
        self.engines[name].engine.load(it["tag"])

    def do_inspect(self, it: Part, at: str) -> None:
        """The user reads whole values."""
        engine = self.engines[it["engine"]].engine
        if it["what"] == "weights":
            self.see(at, "parameters", it["engine"], engine.parameters())
        elif it["what"] == "optimizer_state":
            self.see_state(at, it["engine"])

    def do_raise(self, it: Part, at: str) -> None:
        """The user's own error."""
        raise UserError

    def do_catch(self, it: Part, at: str) -> None:
        """Goes on after the user's own error."""
        with contextlib.suppress(UserError):
            self.do_body(it.body, at)

    def do_foreign_backward(self, it: Part, at: str) -> None:
        """Of a loss that no engine is in."""
        weight = torch.ones(2, requires_grad=True, device=device.here())
        (weight * 2).sum().backward()

    @staticmethod
    def zeros(requires_grad: bool = False) -> Tensor:
        """The input of a forward."""
        return torch.zeros(ACTIVATIONS, requires_grad=requires_grad, device=device.here())

    # --- what the rank sees ---

    def see(
        self, at: str, what: str, engine: str, tensors: dict[str, Tensor | None] | None
    ) -> None:
        """Tensors as numbers."""
        values = None if tensors is None else numbers(tensors)
        self.seen.append(Observation(at, what, engine, values))

    def see_state(self, at: str, name: str) -> None:
        """The optimizer's state, by "parameter:state"."""
        state = self.engines[name].engine.optimizer_state()
        flat = {f"{name}:{key}": it for name, kept in state.items() for key, it in kept.items()}
        self.see(at, "optimizer_state", name, flat)

    def see_states(self, at: str) -> None:
        """At the end of the program."""
        for name, trained in self.engines.items():
            self.see(at, "parameters", name, trained.engine.parameters())
            self.see_state(at, name)

    def see_error(self, at: str, error: Exception) -> None:
        """By its type, its first line and the framework's function that raised it."""
        text = str(error).strip().splitlines()
        values = {
            "type": type(error).__name__,
            "text": text[0] if text else "",
            "frame": frame_of(error),
        }
        self.seen.append(Observation(at, "error", "", values))


class HookWatch:
    """Does what a program hooks at modules: each hook once, when it is met first."""

    def __init__(self, interpreter: Interpreter, hooks: tuple[Hook, ...], at: str) -> None:
        self.interpreter = interpreter
        self.at = at
        self.left = [hook for hook in hooks if hook.at in ("forward", "gradient")]

    def __call__(self, module: str, output: Tensor) -> None:
        for hook in list(self.left):
            if hook.module == module and hook.at == "forward":
                self.do(hook)
            elif hook.module == module and output.requires_grad:
                on_gradient(output, lambda hook=hook: self.do(hook))

    def do(self, hook: Hook) -> None:
        """The body of a hook."""
        if hook in self.left:
            self.left.remove(hook)
            self.interpreter.do_body(hook.body, f"{self.at}/{hook.module}")


def on_gradient(tensor: Tensor, do: Callable[[], None]) -> None:
    """Calls `do` when the tensor gets its gradient."""

    def hook(gradient: Tensor) -> None:
        do()

    tensor.register_hook(hook)


def groups_of(model: Root, count: int) -> list[list[torch.nn.Parameter]]:
    """The trained parameters, given to groups in turns."""
    left_out = model.ungrouped()
    trained = [it for it in model.parameters() if it.requires_grad and id(it) not in left_out]
    count = max(1, min(count, len(trained)))
    return [trained[at::count] for at in range(count)]
