"""FSDP2 under checkpoint wrappers, with saved tensors or parameters kept on the host."""

import sys

import torch
from job import batch, begin, finish
from models import Block, Net
from shards import shard
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from torch.distributed.fsdp import CPUOffloadPolicy

ARGUMENTS = ("checkpoint", "save_on_cpu", "offload_policy")

rank, _ = begin()
torch.manual_seed(7)
kind = sys.argv[1]
net = Net(3)
if kind == "checkpoint":
    apply_activation_checkpointing(net, check_fn=lambda module: isinstance(module, Block))
options = {"offload_policy": CPUOffloadPolicy(pin_memory=False)} if kind == "offload_policy" else {}
model = shard(net, **options)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    with torch.autograd.graph.save_on_cpu() if kind == "save_on_cpu" else torch.enable_grad():
        loss = model(batch(step, rank, width=8)).pow(2).mean()
    loss.backward()
    optimizer.step()
finish(model)
