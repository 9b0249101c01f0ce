"""Puts the parts together: finds models, opens and closes the recorded steps, cleans up."""

from __future__ import annotations

import functools
import platform
import sys
from typing import Any, Optional

import torch
from torch import nn

from . import callbacks, exits, transforms
from .checkpoints import Checkpoints
from .collectives import Collectives
from .compatibility import check_torch
from .ddp import DdpBuckets
from .deepspeed_engine import Engines, is_engine
from .errors import RecorderError
from .fsdp2 import Fsdp2Units, is_sharded
from .graph_tasks import GraphTasks
from .imports import ImportWatch
from .modules import ModelFinder, ModuleForwards
from .names import NameBook
from .optimizers import OptimizerEvents, StepCounter
from .options import Detail, Options
from .parameters import ParameterHooks
from .patches import PatchBook
from .session import Session
from .version import VERSION

_active: Optional[Recorder] = None


class Recorder:
    """One recording of this process.

    Two sets of patches: those that last (counting steps and collectives, noticing engines) and
    those that are there only while steps are recorded, so that other steps cost nothing.
    """

    def __init__(self, options: Options, finds_models: bool):
        check_torch()
        self.options = options
        self._finds_models = finds_models
        self.session = Session(options, self._facts())
        self.names = NameBook()
        self._counter = StepCounter(self._on_step)
        self._collectives = Collectives(self.session, self.names)
        self._engines = Engines(self.session, self.names)
        self._ddp: list[DdpBuckets] = []
        self._lasting = PatchBook()
        self._window = PatchBook()
        self._models: list[nn.Module] = []  # in order of their numbers, wrappers included
        self._is_over = False

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
        self._counter.install(self._lasting)
        self._collectives.install(self._lasting)
        self._lasting.set(self._collectives, "on_reducer_call", self._on_reducer_call)
        name = "deepspeed.runtime.engine"
        ImportWatch(name, self._watch_engine_class).install(self._lasting)
        if self.options.steps.holds(0):
            self._open()

    def stop(self) -> None:
        """Takes everything away and completes the file. May be called again."""
        global _active
        if self._is_over:
            return
        self._is_over = True
        self._close_window()
        self.session.close()
        try:
            self._lasting.undo()
        finally:
            if _active is self:
                _active = None
        self._say_where()

    def add_model(self, model: nn.Module) -> None:
        """Watches a model, wrapper or engine from now on."""
        if any(model is known for known in self._models):
            return
        self._models.append(model)
        if is_engine(model) and len(self._models) == 1:
            self.session.facts.update(self._engines.facts(model))
            producer = self.session.facts["producer"]
            producer["deepspeed"] = getattr(sys.modules["deepspeed"], "__version__", "unknown")
        self.session.tell_facts()
        if self.session.is_open:
            self._attach(len(self._models) - 1)

    def note_failure(self, error: BaseException) -> None:
        """The last event of a job that an exception ends."""
        message = (str(error).splitlines() or [""])[0][:400]
        self.session.emit("exc", {"type": type(error).__name__, "message": message})

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
        session, patches = self.session, self._window
        session.is_open = True
        session.emit("mark", {"label": f"recorded_step:{self._counter.steps}"})
        self._collectives.declare_groups()
        if self._finds_models:
            ModelFinder(self.names, self._found).install(patches)
        at_end = self._collectives.poll
        GraphTasks(session, self.names, self._before_backward, at_end).install(patches)
        callbacks.install(session, patches)
        OptimizerEvents(session, self._counter).install(patches)
        transforms.install(session, patches)
        if self.options.detail >= Detail.ENGINE:
            Checkpoints(session, self.names).install(patches)
            ModuleForwards(session, self.names).install(patches)
        if self.options.detail >= Detail.FULL:
            transforms.install_autocast(session, patches)
        self._engines = Engines(session, self.names)
        self._has_units = False
        self._hooks = ParameterHooks(session, self.names, patches)
        for number in range(len(self._models)):
            self._attach(number)

    def _close_window(self) -> None:
        self._collectives.poll()
        self.session.is_open = False
        self._window.undo()
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
            self._engines.attach(model, number, self._window)
        elif is_sharded(inner):
            self._watch_units(number)
        self._hooks.watch(inner, number)

    def _watch_units(self, number: int) -> None:
        if self.options.detail >= Detail.ENGINE and not self._has_units:
            self._has_units = True
            Fsdp2Units(self.session, self.names, number).install(self._window)

    def _inner(self, model: nn.Module, number: int) -> nn.Module:
        if is_engine(model):
            return model.module
        if isinstance(model, nn.parallel.DistributedDataParallel):
            self.names.name_module(model, f"ddp{number}" if number else "ddp")
            self._ddp.append(DdpBuckets(self.session, self.names, model))
            return model.module
        return model

    def _watch_engine_class(self) -> None:
        """An engine is noticed when it is made, and its steps are the steps that count."""
        owner = sys.modules["deepspeed.runtime.engine"].DeepSpeedEngine
        make, step = owner.__init__, owner.step
        counter = self._counter

        @functools.wraps(make)
        def __init__(engine, *args, **kwargs):
            make(engine, *args, **kwargs)
            if self._finds_models:
                self.add_model(engine)

        @functools.wraps(step)
        def counted_step(engine, *args, **kwargs):
            before = engine.global_steps
            number = self._engines.number_of(engine)
            self.session.emit("opt.step", {"engine": number, "gstep": before})
            counter.engine_depth += 1
            try:
                return step(engine, *args, **kwargs)
            finally:
                counter.engine_depth -= 1
                is_first = not self._models or engine is self._models[0]
                if is_first and engine.global_steps != before:
                    counter.count()

        self._lasting.set(owner, "__init__", __init__)
        self._lasting.set(owner, "step", counted_step)

    # ---- DDP ---------------------------------------------------------------------------------

    def _before_backward(self) -> None:
        for buckets in self._ddp:
            buckets.before_backward()

    def _on_reducer_call(self, args: tuple[Any, ...]) -> None:
        if len(self._ddp) == 1:
            self._ddp[0].on_reducer_call(args)

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
            },
            "program": self.options.program,
            "notes": [f"steps {self.options.steps}, detail {self.options.detail.name.lower()}"],
        }

    def _say_where(self) -> None:
        if self.options.is_quiet or self.session.is_abandoned:
            return
        path = self.session.path
        if path is None:
            words = f"nothing recorded: the job made {self._counter.steps} optimizer steps, asked "
            words += f"for were {self.options.steps}"
        else:
            words = f"{self.session.events} events in {path}"
        print(f"zeroproof-recorder: {words}", file=sys.stderr, flush=True)
