"""A model and its optimizer that are copied, pickled, traced, scripted, exported in the middle of training."""

import copy
import inspect
import io
import pickle

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel


def through_file(value):
    """Saved and loaded whole."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def size_of(value):
    """How many bytes its pickle has."""
    return len(pickle.dumps(value))


rank, _ = begin()
torch.manual_seed(7)
net = Net()
model = DistributedDataParallel(net, bucket_cap_mb=2 / 1024)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x = batch(0, rank, width=8)
ways = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "file": through_file,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "script": torch.jit.script,
    "trace": lambda value: torch.jit.trace(value, x),
    "fx": torch.fx.symbolic_trace,
    "export": lambda value: torch.export.export(value, (x,)).module(),
    "functional": lambda value: lambda y: torch.func.functional_call(
        value, dict(value.named_parameters()), (y,)
    ),
}
for step in range(3):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
    for name, way in ways.items():
        try:
            other = way(net)
            print(name, other(x).sum().item().hex(), size_of(net), flush=True)
        except Exception as error:
            print(name, type(error).__name__, str(error).splitlines()[:1], flush=True)
    moved = copy.deepcopy(optimizer)
    print(size_of(moved.state_dict()), sorted(vars(moved)), size_of(optimizer), flush=True)
    print([len(getattr(net, name)) for name in ("_forward_hooks", "_forward_pre_hooks")], flush=True)
for call in (dist.all_reduce, dist.all_gather, dist.barrier, torch.utils.checkpoint.checkpoint):
    print(call.__name__, call.__module__, inspect.signature(call), size_of(call), flush=True)
print(inspect.getsource(torch.optim.AdamW.step)[:60], flush=True)
finish(model)
