"""DDP with a communication hook: gradients cast to 16 bits, or PowerSGD."""

import sys

import torch
from job import batch, begin, finish, need
from models import Net
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

ARGUMENTS = ("fp16", "bf16", "allreduce", "powersgd")

need(torch_version=(2, 7))  # 2.4 may hang at its end: the group goes while a callback is released
rank, _ = begin()
torch.manual_seed(7)
# PowerSGD waits inside callbacks: with several buckets gloo's two threads wait for each other.
cap = 25 if "powersgd" in sys.argv else 2 / 1024
model = DistributedDataParallel(Net(3), bucket_cap_mb=cap)
if "powersgd" in sys.argv:
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
else:
    hook = {
        "fp16": default_hooks.fp16_compress_hook,
        "bf16": default_hooks.bf16_compress_hook,
        "allreduce": default_hooks.allreduce_hook,
    }[sys.argv[1]]
    model.register_comm_hook(None, hook)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(5):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
torch.distributed.barrier()  # the group must not go while its threads still hold a callback
finish(model)
