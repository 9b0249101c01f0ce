"""Models that torch.compile has compiled, in every place where people put it.

Usage: torchrun --nproc_per_node 2 compiled_job.py OUT [BACKEND [SHAPE ...]]
Writes what dynamo counted, the losses and the parameters, as bits, to OUT_r<rank>.json.
"""

import hashlib
import json
import sys
import time
import warnings

import torch
import torch._dynamo
from job import begin
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 5
LAYERS = (0, 2, 4)


def inner(model, backend):
    return DistributedDataParallel(torch.compile(model, backend=backend), bucket_cap_mb=1)


def outer(model, backend):
    return torch.compile(DistributedDataParallel(model, bucket_cap_mb=1), backend=backend)


def layers(model, backend):
    for layer in LAYERS:
        model[layer].compile(backend=backend)
    return DistributedDataParallel(model)


def function(model, backend):
    def forward(x):
        return model(x)

    return torch.compile(forward, backend=backend)


def sharded_layers(model, backend):
    from torch.distributed.fsdp import fully_shard

    for layer in LAYERS:
        model[layer].compile(backend=backend)
        fully_shard(model[layer])
    fully_shard(model)
    return model


def sharded(model, backend):
    from torch.distributed.fsdp import fully_shard

    for layer in LAYERS:
        fully_shard(model[layer])
    fully_shard(model)
    return torch.compile(model, backend=backend)


SHAPES = (inner, outer, layers, function, sharded_layers, sharded)


def run(shape, backend):
    """Five steps; everything that has to be the same with and without the recorder."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        said = train(shape, backend)
    said["same"]["warnings"] = sorted({str(warning.message)[:80] for warning in caught})
    return said


def train(shape, backend):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 400), nn.GELU(), nn.Linear(400, 400), nn.GELU(),
                          nn.Linear(400, 8))  # fmt: skip
    run_model = shape(model, backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses, times = [], []
    for step in range(STEPS):
        x = torch.randn(4, 64, generator=torch.Generator().manual_seed(step))
        begun = time.perf_counter()
        loss = run_model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - begun)
        losses.append(loss.item().hex())
    digest = hashlib.sha256()
    for param in model.parameters():
        local = param.to_local() if hasattr(param, "to_local") else param
        digest.update(local.detach().numpy().tobytes())
    counters = torch._dynamo.utils.counters
    breaks = sum(counters["graph_break"].values())
    counted = {name: dict(counters[name]) for name in ("stats", "frames", "aot_autograd")}
    same = {"losses": losses, "params": digest.hexdigest(), "breaks": breaks, **counted}
    return {"same": same, "ms": round(1e3 * sorted(times)[1], 2)}


def main():
    rank, _ = begin()
    out, backend, *words = [*sys.argv[1:], "aot_eager"][: max(2, len(sys.argv) - 1)]
    shapes = [shape for shape in SHAPES if not words or shape.__name__ in words]
    results = {shape.__name__: run(shape, backend) for shape in shapes}
    with open(f"{out}_r{rank}.json", "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
