"""FSDP2 with parameters in bfloat16 and reductions in float32, under checkpoints or not."""

import sys

import torch
from job import batch, begin, finish
from models import Net
from shards import shard
from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy

ARGUMENTS = ("", "checkpoint")

rank, _ = begin()
torch.manual_seed(7)
net = Net()
if "checkpoint" in sys.argv:
    wrapper.apply_activation_checkpointing(net, check_fn=lambda part: part in list(net.blocks))
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
model = shard(net, mp_policy=policy)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).float().pow(2).mean().backward()
    optimizer.step()
finish(model)
