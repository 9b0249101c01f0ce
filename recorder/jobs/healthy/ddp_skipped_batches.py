"""DDP whose ranks agree to skip a batch that is not finite; the last window is shorter than the others."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

MICRO_BATCHES, BATCHES = 3, 8

rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net(), bucket_cap_mb=2 / 1024)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
in_window = 0
for number in range(BATCHES):
    x = batch(number, rank, width=8)
    if number == 4 and rank == 1:
        x = x * float("nan")
    is_last = in_window == MICRO_BATCHES - 1 or number == BATCHES - 1
    model.require_backward_grad_sync = is_last
    loss = model(x).pow(2).mean()
    is_finite = torch.isfinite(loss.detach()).float()
    dist.all_reduce(is_finite, op=dist.ReduceOp.MIN)
    if not is_finite:
        optimizer.zero_grad()
        in_window = 0
        continue
    loss.backward()
    in_window += 1
    if is_last:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        optimizer.step()
        optimizer.zero_grad()
        in_window = 0
finish(model)
