"""Puts the parts together: finds models, opens and closes the recorded steps, cleans up."""

from __future__ import annotations

import functools
import platform
import sys
from typing import Any, Optional

import torch
from torch import nn

from . import callbacks, exits, transforms
from .calls import Call
from .checkpoints import Checkpoints
from .collectives import Collectives
from .compiler import Compiler, compiled_parts
from .compatibility import check_torch
from .ddp import DdpBuckets
from .deepspeed_engine import Engines, is_engine
from .errors import RecorderError
from .failures import Failures
from .fsdp2 import Fsdp2Units, is_sharded
from .graph_tasks import GraphTasks
from .imports import ImportWatch
from .model_facts import ModelFacts
from .modules import GlobalHooks, ModelFinder, ModuleForwards
from .names import NameBook
from .optimizers import OptimizerEvents, StepCounter
from .options import Detail, Options
from .parameters import ParameterHooks
from .patches import PatchBook
from .session import Session
from .version import VERSION
from .wrappers import part_in, wrapper_kind

EVERYTHING = ("*",)
_FACTS = ("wrapper", "optimizer", "numbers")
_active: Optional[Recorder] = None


class Recorder:
    """One recording of this process.

    Two sets of patches: those that last (counting steps and collectives, noticing engines) and
    those that are there only while steps are recorded, so that other steps have no cost.
    """

    def __init__(self, options: Options, finds_models: bool):
        check_torch()
        self.options = options
        self._finds_models = finds_models
        self.session = Session(options, self._facts())
        self.names = NameBook()
        self.names.declare = self.session.add
        self._counter = StepCounter(self.session, self._on_step)
        self._collectives = Collectives(self.session, self.names, self._on_reducer_call)
        self._failures = Failures(self.session)
        names = (self._counter, self._collectives.group_name)
        self._model_facts = ModelFacts(self.session, self.names, *names)
        self._engines = Engines(self.session, self.names)
        self._ddp: list[DdpBuckets] = []
        self._lasting = PatchBook()
        self._window = PatchBook()
        self._models: list[nn.Module] = []  # in order of their numbers, wrappers included
        self._is_over = False
        self._compiler = Compiler(self.session, self._before_first_compilation)
        self._finder = ModelFinder(self.session, self.names, self._found)
        self._hooks_of_all = GlobalHooks(self.session.guard, self._global_hooks())
        self._compilations_seen = 0

    # ---- begin and end -----------------------------------------------------------------------

    def start(self) -> None:
        """Begins to count, and to record if step 0 is asked for."""
        global _active
        if _active is not None:
            raise RecorderError(
                "already recording: one recording a process; end the other `with` block first, or "
                "do not use zeroproof_recorder.record() under `python -m zeroproof_recorder run`"
            )
        self.session.start()
        _active = self
        exits.install(self.session, self.stop, self._lasting)
        self._install("step_counter", ("mark",), self._counter.install, self._lasting)
        self._install("collectives", ("coll.*",), self._collectives.install, self._lasting)
        self._install("exception", ("exc",), self._failures.install, self._lasting)
        self._install("compiler", (), self._compiler.install, self._lasting)
        engines = self.session.guard.observer("engines", ("engine.*", "opt.step"))
        name = "deepspeed.runtime.engine"
        watch = ImportWatch(name, engines, self._watch_engine_class)
        self._install("engines", (), watch.install, self._lasting)
        if self.options.steps.holds(0):
            self._guarded("window", EVERYTHING, self._open)

    def _guarded(self, name: str, lost: tuple[str, ...], part, *args) -> None:
        self.session.guard.observer(name, lost).guarded(part)(*args)

    def _install(self, name: str, lost: tuple[str, ...], part, patches: PatchBook) -> None:
        """One part that does not work on this version leaves the others as they are."""
        self._guarded(name, lost, part, patches)

    def stop(self) -> None:
        """Takes everything away and completes the file. May be called again."""
        global _active
        if self._is_over:
            return
        self._is_over = True
        observer = self.session.guard.observer("end", ("end",))
        try:
            hooks = functools.partial(self._hooks_of_all.remove, is_end=True)
            for part in (self._close_window, hooks, self.session.close, self._lasting.undo):
                observer.always(part)()
        finally:
            if _active is self:
                _active = None
        observer.always(self._say_where)()

    def add_model(self, model: nn.Module) -> None:
        """Watches a model, wrapper or engine from now on."""
        self._guarded("models", ("param.*", "module.*"), self._add_model, model)

    def _add_model(self, model: nn.Module) -> None:
        if any(model is known for known in self._models):
            return
        self._models.append(model)
        producer = self.session.facts["producer"]
        if producer["framework"] == "plain":  # as long as no model has said more
            producer["framework"] = wrapper_kind(model)
        if is_engine(model) and model is self._first_engine():
            self.session.facts.update(self._engines.facts(model))
            producer["deepspeed"] = getattr(sys.modules["deepspeed"], "__version__", "unknown")
        self.session.tell_facts()
        if self.session.is_open:
            self._attach_guarded(len(self._models) - 1)

    def _attach_guarded(self, number: int) -> None:
        self._guarded(f"model{number}", ("param.*", "module.*"), self._attach, number)

    def note_failure(self, error: BaseException) -> None:
        """The last event of a job that an exception ends."""
        self._guarded("exception", ("exc",), self._failures.note, error)

    # ---- the recorded steps ------------------------------------------------------------------

    def _on_step(self, complete: int) -> None:
        """Between two steps."""
        steps, session = self.options.steps, self.session
        self._collectives.poll()
        if steps.holds(complete) == session.is_open:
            return
        if session.is_open:
            self._close_window()
            session.flush()
        else:
            self._open()
        if steps.is_over(complete) and not session.is_open:
            session.close()  # what counts steps stays: PyTorch is going through its hooks

    def _open(self) -> None:
        session = self.session
        session.is_open = True
        session.emit("mark", {"label": f"recorded_step:{self._counter.steps}"})
        self._collectives.declare_groups()
        self._hooks_of_all.install(self._compiler.compilations > 0)
        for level, name, lost, part in self._parts():
            if self.options.detail >= level:
                self._install(name, lost, part, self._window)
        self._engines = Engines(session, self.names)
        self._has_units = False
        self._hooks = ParameterHooks(session, self.names, self._window)
        for number in range(len(self._models)):
            self._attach_guarded(number)

    def _parts(self):
        """What observes while steps are recorded, in the order in which it is installed."""
        session, names = self.session, self.names
        tasks = GraphTasks(session, names, self._before_backward, self._collectives.poll)
        optimizers = OptimizerEvents(session, names, self._counter, self._model_facts)
        callback_view = functools.partial(callbacks.install, session)
        levels = functools.partial(transforms.install, session)
        autocast = functools.partial(transforms.install_autocast, session)
        return (
            (Detail.HOOKS, "graph_tasks", (), tasks.install),
            (Detail.HOOKS, "callbacks", callbacks.LOST, callback_view),
            (Detail.HOOKS, "optimizer", ("opt.*",), optimizers.install),
            (Detail.HOOKS, "transforms", ("ft.*",), levels),
            (Detail.ENGINE, "checkpoints", ("ckpt.*",), Checkpoints(session, names).install),
            (Detail.FULL, "autocast", ("autocast.*",), autocast),
        )

    def _global_hooks(self) -> list[Any]:
        """What stands at every module call, in the order in which it runs."""
        hooks = [self._finder] if self._finds_models else []
        hooks.append(ModuleForwards(self.session, self.names))
        return [hook for hook in hooks if self.options.detail >= hook.detail]

    def _before_first_compilation(self) -> None:
        steps = self.options.steps
        if not steps.is_over(self._counter.steps):
            self._hooks_of_all.stay()

    def _close_window(self) -> None:
        self._collectives.poll()
        self._guarded("model_facts", _FACTS, self._model_facts.clear)
        self.session.is_open = False
        self._window.undo()
        self._hooks_of_all.remove()
        self._ddp.clear()

    # ---- models ------------------------------------------------------------------------------

    def _found(self, model: nn.Module) -> None:
        if not any(model is engine.module for engine in self._models if is_engine(engine)):
            self.add_model(model)

    def _attach(self, number: int) -> None:
        model = self._models[number]
        inner = self._inner(model, number)
        for record in self.names.add_model(inner, number):
            self.session.add(record)
        if is_engine(model):
            attach = self._engines.attach
            self._guarded("engines", (), attach, model, number, self._window)
        elif is_sharded(inner):
            self._watch_units()
        self._hooks.watch(inner, number)
        for part in compiled_parts(model):
            label = f"compiled_module:{self.names.module_word(part)}"
            self.session.emit("mark", {"label": label, "engine": number})
        attach = self._model_facts.attach
        self._guarded("model_facts", _FACTS, attach, model, inner, number, self._hooks.watch)

    def _watch_units(self) -> None:
        if self.options.detail >= Detail.ENGINE and not self._has_units:
            self._has_units = True
            units = Fsdp2Units(self.session, self.names)
            self._install("fsdp2", ("engine.*", "zparam.*"), units.install, self._window)

    def _inner(self, model: nn.Module, number: int) -> nn.Module:
        if is_engine(model):
            return model.module
        ddp, inner = part_in(model)
        if ddp is not None:
            self.names.name_module(ddp, f"ddp{number}" if number else "ddp")
            self._ddp.append(DdpBuckets(self.session, self.names, ddp, number))
        return inner

    def _first_engine(self) -> Any:
        return next((model for model in self._models if is_engine(model)), None)

    def _watch_engine_class(self) -> None:
        """An engine is noticed when it is made, and its steps are the steps that count."""
        owner = sys.modules["deepspeed.runtime.engine"].DeepSpeedEngine
        guard = self.session.guard
        makes = guard.observer("engines.init", ("engine.*", "param.*"))
        steps = guard.observer("engines.step", ("opt.step",))
        steps.at_off = self._leave_engine
        self._lasting.observe(owner, "__init__", makes, after=self._engine_made)
        self._lasting.observe(owner, "step", steps, self._engine_steps, self._engine_stepped)

    def _engine_made(self, call: Call) -> None:
        if self._finds_models and call.failure is None:
            self.add_model(call.subject)

    def _engine_steps(self, call: Call) -> None:
        engine = call.subject
        call.token = engine.global_steps
        number = self._engines.number_of(engine)
        self._counter.engine_depth += 1
        facts = self.session.guard.observer("model_facts", _FACTS)
        optimizer = facts.guarded(self._model_facts.before_engine_step)(engine, number)
        fields = {"engine": number, "gstep": call.token, "optimizer": optimizer}
        self.session.emit("opt.step", fields)

    def _engine_stepped(self, call: Call) -> None:
        engine, before = call.subject, call.token
        self._counter.engine_depth -= 1
        if engine.global_steps == before:
            return
        number = self._engines.number_of(engine)
        self._guarded("model_facts", _FACTS, self._model_facts.after_engine_step, engine, number)
        if self._first_engine() in (None, engine):
            self._counter.count()

    def _leave_engine(self) -> None:
        self._counter.engine_depth = 0

    # ---- DDP ---------------------------------------------------------------------------------

    def _before_backward(self) -> None:
        if self._finds_models and self._compiler.compilations > self._compilations_seen:
            self._compilations_seen = self._compiler.compilations
            self._finder.observer.guarded(self._finder.find_all)()
        observer = self.session.guard.observer("ddp.buckets", ("bucket.ready", "mark"))
        for buckets in self._ddp:
            observer.guarded(buckets.before_backward)()
        self._guarded("model_facts", _FACTS, self._model_facts.before_backward)

    def _on_reducer_call(self, tensors: list[torch.Tensor]) -> None:
        observer = self.session.guard.observer("ddp.buckets", ("bucket.ready", "mark"))
        if len(self._ddp) == 1:
            observer.guarded(self._ddp[0].on_reducer_call)((tensors,))

    # ---- words -------------------------------------------------------------------------------

    def _facts(self) -> dict[str, Any]:
        deepspeed = sys.modules.get("deepspeed")
        return {
            "producer": {
                "tool": f"zeroproof-recorder {VERSION}",
                "torch": torch.__version__,
                "deepspeed": getattr(deepspeed, "__version__", "none"),
                "python": platform.python_version(),
                "accelerator": "cuda" if torch.cuda.is_available() else "cpu",
                "framework": "plain",
            },
            "program": self.options.program,
            "notes": [f"steps {self.options.steps}, detail {self.options.detail.name.lower()}"],
        }

    def _say_where(self) -> None:
        if self.options.is_quiet or self.session.is_abandoned:
            return
        path = self.session.path
        if path is None:
            words = f"no events recorded: the job made {self._counter.steps} optimizer steps, asked "
            words += f"for were {self.options.steps}"
        else:
            words = f"{self.session.events} events in {path}"
        print(f"zeroproof-recorder: {words}", file=sys.stderr, flush=True)
