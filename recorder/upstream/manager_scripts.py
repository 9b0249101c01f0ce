"""Random event scripts against the hook-state manager of the installed DeepSpeed, as traces.

A script is forwards, manual backwards and engine.backward with gradient hooks, checkpoints that run
nested tasks, backwards before the user's, exceptions and steps. Equal seeds give equal scripts on
every release, so what differs between two releases is what their managers do.
"""

import gzip
import importlib
import json
import random
import time
import types

from fake_autograd import FakeAutograd

from zeroproof_recorder.encoder import MANAGER_STATE
from zeroproof_recorder.manager_policy import manager_policy

MODULE = "deepspeed.runtime.base_optimizer"
ENGINE = "deepspeed.runtime.engine"
MODES = {"callback": "graph_task_callback", "fallback": "count_fallback"}
FIRST_SEED = 1000
ATTRIBUTES = tuple(name for name in MANAGER_STATE if not name.startswith("len("))
WATCHED = (
    "run_grad_acc_post_hooks",
    "enter_backward",
    "exit_backward",
    "reset_for_new_step",
    "should_refresh_expected_hook_count",
    "reenter_backward_if_needed",
    "queue_post_backward_callback",
    "update_hook_state_and_maybe_run_epilogue",
)


class Boom(Exception):
    """Ends a backward in the middle."""


class Trace:
    """The records of one script."""

    def __init__(self, header, autograd):
        clock = {"unit": "ns", "source": "CLOCK_MONOTONIC"}
        clock.update(mono0=time.monotonic_ns(), unix0=time.time_ns())
        first = {"rec": "header", "format": "hooktrace", "version": [1, 0], "rank": 0, "world": 1}
        self.records = [
            {**first, "clock": clock, **header},
            {"rec": "thread", "th": 0, "name": "MainThread", "main": True},
        ]
        self._autograd, self._clock = autograd, 0

    def emit(self, kind, **fields):
        """One event, in the task that is open."""
        self._clock += 1
        event = {"rec": "ev", "lc": self._clock, "t": time.monotonic_ns(), "r": 0, "th": 0}
        event.update(k=kind, gt=self._autograd.task, d=self._autograd.depth)
        self.records.append({**event, **fields})

    def write(self, path):
        """To a compressed file."""
        end = {"rec": "end", "events": self._clock, "records": len(self.records) - 1}
        with gzip.open(path, "wt") as file:
            for record in [*self.records, end]:
                file.write(json.dumps(record, separators=(",", ":")) + "\n")


def state_of(manager):
    """As the recorder writes it."""
    state = {name: getattr(manager, name) for name in ATTRIBUTES}
    return {**state, "len(_grad_acc_post_hooks)": len(manager._grad_acc_post_hooks)}


def watch(manager, trace):
    """Writes every call of the manager with the state before and after."""
    for name in WATCHED:
        method = getattr(manager, name, None)
        if method is not None:
            setattr(manager, name, _watched(manager, name, method, trace))


def _watched(manager, name, method, trace):
    def call(*args):
        fields = {"args": list(args)} if args else {}
        trace.emit("bhs.call", method=name, state=state_of(manager), **fields)
        try:
            result = method(*args)
        except Exception as error:
            trace.emit("bhs.return", method=name, exc=type(error).__name__)
            raise
        fields = {} if result is None else {"ret": result}
        trace.emit("bhs.return", method=name, state=state_of(manager), **fields)
        return result

    return call


def stand_in_engine(manager, epilogue):
    """What DeepSpeed's hook after a backward reads of an engine, without a model."""

    class Optimizer(importlib.import_module(MODULE).ZeROOptimizer):
        def needs_scaler(self):
            return False

    optimizer = object.__new__(Optimizer)
    optimizer._backward_hook_state = manager
    return types.SimpleNamespace(
        optimizer=optimizer,
        amp_enabled=lambda: False,
        torch_autocast_z0_gradscaler=None,
        _manual_backward_expected=True,
        _running_engine_backward=False,
        _backward_epilogue=epilogue,
    )


class Script:
    """Drives a manager as engine and optimizer do; the hook after a backward is DeepSpeed's own."""

    def __init__(self, manager, autograd, trace, seed):
        self._after_backward = importlib.import_module(ENGINE).DeepSpeedEngine._backward_post_hook
        self._engine = stand_in_engine(manager, lambda: self._epilogue("auto"))
        self._manager, self._autograd, self._trace = manager, autograd, trace
        self._random = random.Random(seed)
        self._calls, self._expected = 0, 0
        manager.register_grad_acc_post_hook(self._post_hook)

    def run(self, statements):
        """Statements at random."""
        words = [self._forward, self._manual, self._engine_backward, self._pre_user]
        for _ in range(statements):
            statement = self._random.choices(words, (3, 4, 3, 1))[0]
            try:
                statement()
            except Boom:
                self._trace.emit("exc", type="Boom")

    def _forward(self):
        self._manager.reset_for_new_step()

    def _pre_user(self):
        with self._task():
            self._hooks(self._random.randint(1, 3), 0)

    def _manual(self):
        with self._task():
            self._prologue()
            self._hooks(self._random.randint(1, 4), self._random.choice((0, 0, 1)))

    def _engine_backward(self):
        self._trace.emit("engine.call", method="backward")
        self._engine._running_engine_backward = True
        try:
            with self._task():
                self._prologue()
                self._hooks(self._random.randint(1, 4), self._random.choice((0, 0, 1)))
            self._epilogue("backward")
        finally:
            self._engine._running_engine_backward = False
        self._trace.emit("engine.return", method="backward")

    def _task(self):
        return _Task(self._autograd, self._trace, self)

    def _prologue(self):
        self._trace.emit("engine.call", method="prologue")
        self._manager.enter_backward()
        self._manager.queue_post_backward_callback()
        self._trace.emit("engine.return", method="prologue")

    def _epilogue(self, how):
        self._trace.emit("engine.call", method="epilogue", how=how)
        self._manager.exit_backward()
        self._manager.epilogue_ran_this_backward = True
        self._trace.emit("engine.return", method="epilogue")

    def _post_hook(self):
        self._after_backward(self._engine)

    def _hooks(self, count, nested):
        """Hooks of a phase; then perhaps those of a recomputed phase in a task of its own."""
        self._expected = count + self._random.randint(0, 1)
        for number in range(count):
            self._hook(number)
            if self._random.random() < 0.04:
                raise Boom
        for _ in range(nested):
            with self._task():
                more = self._random.randint(1, 3)
                self._expected += more
                for number in range(more):
                    self._hook(count + number)

    def _hook(self, number):
        self._trace.emit("param.post_acc", param=f"p{number}")
        manager = self._manager
        refresh = getattr(manager, "should_refresh_expected_hook_count", lambda: True)()
        manager.reenter_backward_if_needed()
        if refresh:
            self._counted = self._expected
        manager.update_hook_state_and_maybe_run_epilogue(getattr(self, "_counted", self._expected))

    def next_call(self):
        """Number of the next backward."""
        self._calls += 1
        return self._calls


class _Task:
    """A graph task with its brackets in the trace."""

    def __init__(self, autograd, trace, script):
        self._trace, self._call = trace, script.next_call()
        self._context = autograd.graph_task(self._run_callback)

    def __enter__(self):
        self._context.__enter__()
        self._trace.emit("gt.begin", call=self._call)

    def __exit__(self, kind, error, traceback):
        try:
            return self._context.__exit__(kind, error, traceback)
        finally:
            fields = {"exc": kind.__name__} if kind else {}
            self._trace.emit("gt.end", call=self._call, **fields)

    def _run_callback(self, number, callback):
        self._trace.emit("cb.begin", label=f"post_backward#{number}")
        callback()
        self._trace.emit("cb.end", label=f"post_backward#{number}")


def write_script(folder, mode, seed):
    """One script as a trace; its path."""
    module = importlib.import_module(MODULE)
    autograd = FakeAutograd(has_callbacks=mode == "callback")
    name = f"manager_{mode}_{seed}"
    header = {"program": name, "policy": manager_policy(), "mode": MODES[mode], "seed": seed}
    header["producer"] = {"tool": "manager_scripts", "deepspeed": _version()}
    trace = Trace(header, autograd)
    real, module.torch = module.torch, autograd.torch
    try:
        manager = module.BackwardHookStateManager()
        watch(manager, trace)
        Script(manager, autograd, trace, seed).run(statements=8)
    finally:
        module.torch = real
    path = folder / f"{name}.jsonl.gz"
    trace.write(path)
    return path


def _version():
    return importlib.import_module("deepspeed").__version__


def write_scripts(folder, scripts):
    """The paths of all scripts, of both modes; releases before 0.18.5 have no manager."""
    folder.mkdir(parents=True, exist_ok=True)
    if not hasattr(importlib.import_module(MODULE), "BackwardHookStateManager"):
        return
    for mode in MODES:
        for seed in range(FIRST_SEED, FIRST_SEED + scripts):
            yield write_script(folder, mode, seed)
