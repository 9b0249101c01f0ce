"""FSDP2 whose caller finalizes the backward: after one backward, and after two without a reduction."""

import sys

import torch
from job import batch, begin, finish, need
from models import Net
from shards import shard

ARGUMENTS = ("one", "several", "async")

need(torch_version=(2, 15))
rank, _ = begin()
torch.manual_seed(7)
kind = sys.argv[1]
model = shard(Net(3))
model.set_manual_backward_finalization(True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
micro_batches = 2 if kind == "several" else 1
for step in range(3):
    optimizer.zero_grad()
    if kind == "several":
        model.set_requires_gradient_sync(False)
    for micro in range(micro_batches):
        model(batch(2 * step + micro, rank, width=8)).pow(2).mean().backward()
    if kind == "several":
        model.set_requires_gradient_sync(True)
    handle = model.finalize_backward(async_op=kind == "async")
    if kind == "async":
        handle.wait()
    optimizer.step()
finish(model)
