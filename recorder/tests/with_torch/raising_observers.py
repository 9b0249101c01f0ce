"""A job of many kinds, run again and again with an exception injected into each observer in turn.

Usage: RANK=0 WORLD_SIZE=1 ... raising_observers.py OUT. Prints one line of JSON: the observers with a difference.
"""

import contextlib
import importlib.util
import io
import json
import sys
from collections import Counter
from pathlib import Path

import models
import support
import test_identity
import torch
import torch.distributed as dist
from job import batch, begin
from torch.distributed.fsdp import fully_shard

import zeroproof_recorder
from zeroproof_recorder import calls, guard, recorder  # all of it, before the first injection

HAS_DEEPSPEED = importlib.util.find_spec("deepspeed") is not None
if HAS_DEEPSPEED:
    from deepspeed_job import make_engine


class ObserverError(Exception):
    """The exception that the observer raises."""


class FailingObserver:
    """Lets each call of one observer fail; counts the calls of the others."""

    def __init__(self, name=None):
        self.name = name
        self.calls = Counter()

    def __enter__(self):
        assert recorder.__name__ in sys.modules
        self._undo, observed = [], calls.observed
        for name in ("guarded", "hook"):
            self._replace(guard.Observer, name, self._method(getattr(guard.Observer, name)))
        for module in [m for n, m in sys.modules.items() if n.startswith("zeroproof_recorder.")]:
            if getattr(module, "observed", None) is observed:
                self._replace(module, "observed", self._observed(observed))
        return self

    def __exit__(self, *_):
        for owner, name, before in reversed(self._undo):
            setattr(owner, name, before)

    def _replace(self, owner, name, value):
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _method(self, original):
        return lambda observer, function: original(observer, self._counted(observer, function))

    def _observed(self, original):
        def observed(function, observer, use, before=None, after=None):
            before, after = (part and self._counted(observer, part) for part in (before, after))
            return original(function, observer, use, before, after)

        return observed

    def _counted(self, observer, function):
        def counted(*args, **kwargs):
            self.calls[observer.name] += 1
            if observer.name == self.name:
                raise ObserverError("the\nobserver")
            return function(*args, **kwargs)

        return counted


def plain(order):
    """Both checkpoints, functorch, autocast, a frozen part, hooks of the user."""
    numbers = []
    for make in (lambda: models.Checkpointed(True), lambda: models.Checkpointed(False)):
        model = make()
        test_identity.watch(model, order)
        numbers += test_identity.train(model, order, steps=2)
    weight = torch.ones(3)
    grads = torch.func.vmap(torch.func.grad(lambda w: (w * w).sum()))(weight.expand(2, 3))
    tangent = torch.func.jvp(torch.sin, (weight,), (weight,))[1]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = torch.ones(2, 2) @ torch.ones(2, 2)
    return [*numbers, *(t.float().numpy().tobytes() for t in (grads, tangent, product))]


def distributed(order):
    """DDP, FSDP2, collectives that Python waits for."""
    ddp = torch.nn.parallel.DistributedDataParallel(models.Mlp())
    numbers = test_identity.train(ddp, order, steps=2)
    sharded = models.Mlp()
    fully_shard(sharded.l1)
    fully_shard(sharded)
    optimizer = torch.optim.SGD(sharded.parameters(), lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        sharded(batch(step)).backward()
        optimizer.step()
    numbers += [p.to_local().detach().numpy().tobytes() for p in sharded.parameters()]
    value = torch.arange(4.0)
    dist.all_reduce(value, async_op=True).wait()
    gathered = torch.ops._c10d_functional.all_reduce(value, "sum", dist.group.WORLD.group_name)
    torch.ops._c10d_functional.wait_tensor(gathered)
    return [*numbers, gathered.numpy().tobytes()]


def deepspeed(order):
    """Stages 1 to 3."""
    numbers = []
    for stage in (1, 2, 3) if HAS_DEEPSPEED else ():
        engine = make_engine(models.Checkpointed(True), stage)
        test_identity.watch(engine.module, order)
        for step in range(2):
            loss = engine(batch(step))
            engine.backward(loss)
            engine.step()
            numbers.append(loss.detach().numpy().tobytes())
        numbers += [
            getattr(p, "ds_tensor", p).detach().numpy().tobytes()
            for p in engine.module.parameters()
        ]
        engine.destroy()
    return numbers


def run(part):
    """Numbers, and the order in which the user's hooks ran."""
    torch.manual_seed(7)
    order = []
    return part(order), order


def recorded(part, folder, name=None):
    """A part of the job under the recorder, and what the recorder said of it."""
    with FailingObserver(name) as failing, contextlib.redirect_stderr(io.StringIO()) as stderr:
        recording = zeroproof_recorder.record(out=folder, detail="full", quiet=True, program="p")
        with recording as running:
            result = run(part)
        path = running.session.path
    lines = [line for line in stderr.getvalue().splitlines() if "zeroproof-recorder" in line]
    notes = [r for r in _records(path) if r["rec"] == "note" and r.get("observer") == name]
    Path(path).unlink(missing_ok=True)
    return result, failing.calls, lines, notes


def _records(path):
    check = support.TraceCheck()
    lines = list(support.read_lines(path))
    check.read(lines)
    return [json.loads(line) for line in lines]


def fail_each(part, folder, done):
    """Lets each observer fail that this part exercises, unless it is done; what went wrong."""
    run(part)  # PyTorch's work of a first run
    expected = run(part)
    result, calls, said, _ = recorded(part, folder)
    wrong = {} if result == expected and not said else {"no exception": said or "differs"}
    for name in sorted(set(calls) - done):
        result, _, lines, notes = recorded(part, folder, name)
        found = (result == expected, len(lines), len(notes))
        if found != (True, 1, 1) or "ObserverError: the" not in lines[0] or not notes[0]["lost"]:
            wrong[name] = [*found, lines, notes]
        done.add(name)
        print(name, found, file=sys.stderr, flush=True)
    return wrong


def main():
    begin()
    done, wrong = set(), {}
    for part in (plain, distributed, deepspeed):
        wrong.update(fail_each(part, sys.argv[1], done))
    print(json.dumps({"exercised": sorted(done), "wrong": wrong}))


if __name__ == "__main__":
    main()
