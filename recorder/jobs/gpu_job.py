"""A training job on GPUs over NCCL; recorder/tests/on_gpus.py runs it with and without the recorder.

    torchrun --nproc_per_node 2 gpu_job.py KIND [--steps N] [--dump DIR]

Each rank prints `BITS <hash of its parameters> graphs <compilations>` and `MS <median step>`. `--dump` also leaves the
flight recorder's entries.
"""

import argparse
import hashlib
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch._dynamo.utils import counters

WIDTH = 512
KINDS = ("ddp", "ddp_amp", "ddp_compiled", "fsdp2", "fsdp2_compiled", "ring")


class Block(nn.Module):
    """A residual block."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        """PyTorch's."""
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def build(kind, width, device):
    """The model, wrapped as the kind says."""
    net = nn.Sequential(*(Block(width) for _ in range(12))).to(device)
    if kind.startswith("fsdp2"):
        from torch.distributed.fsdp import fully_shard

        for block in net:
            if kind.endswith("compiled"):
                block.compile()
            fully_shard(block)
        return fully_shard(net)
    if kind == "ring":
        return net
    if kind == "ddp_compiled":
        net = torch.compile(net)
    return nn.parallel.DistributedDataParallel(net, device_ids=[device.index], bucket_cap_mb=4)


def exchange(rank, world, device):
    """A ring of batched sends and receives, and an uneven all-to-all."""
    before, after = (rank - 1) % world, (rank + 1) % world
    out = torch.full((rank + 3,), float(rank), device=device)
    into = torch.empty(before + 3, device=device)
    ops = [dist.P2POp(dist.isend, out, after), dist.P2POp(dist.irecv, into, before)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    sent = [rank + 1 + other for other in range(world)]
    got = [other + 1 + rank for other in range(world)]
    table = torch.zeros(sum(got), device=device)
    dist.all_to_all_single(table, torch.ones(sum(sent), device=device), got, sent)
    return into.sum() + table.sum()


def step(model, optimizer, scaler, kind, number):
    """One step; the data are the same in every run."""
    rank, device = dist.get_rank(), next(model.parameters()).device
    generator = torch.Generator().manual_seed(100 * number + rank)
    x = torch.randn(64, WIDTH, generator=generator).to(device)
    with torch.autocast("cuda", torch.float16, enabled=kind == "ddp_amp"):
        loss = model(x).pow(2).mean()
    if kind == "ring":
        loss = loss + exchange(rank, dist.get_world_size(), device) * 0.0
    scaler.scale(loss).backward()
    if kind == "ring":
        for param in model.parameters():
            dist.all_reduce(param.grad)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


def parameter_hash(model):
    """Of what this rank holds."""
    digest = hashlib.sha256()
    for param in model.parameters():
        local = param.to_local() if hasattr(param, "to_local") else param
        digest.update(local.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


def leave_dump(folder, kind, rank):
    """What `zeroproof replay` reads as flight-recorder dumps."""
    from torch._C._distributed_c10d import _dump_nccl_trace

    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{kind}_rank_{rank}", "wb") as file:
        file.write(_dump_nccl_trace())


def main():
    """The job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--dump", default="")
    options = parser.parse_args()
    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(3)
    model = build(options.kind, WIDTH, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda", enabled=options.kind == "ddp_amp")
    times = []
    for number in range(options.steps):
        torch.cuda.synchronize()
        began = time.perf_counter()
        step(model, optimizer, scaler, options.kind, number)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    graphs = counters["stats"].get("unique_graphs", 0)
    print(f"BITS {parameter_hash(model)} graphs {graphs}", flush=True)
    print(f"MS {1e3 * statistics.median(times[3:]):.2f}", flush=True)
    if options.dump:
        leave_dump(options.dump, options.kind, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
