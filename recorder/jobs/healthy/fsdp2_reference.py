"""FSDP2 policy and frozen FSDP2 reference, two forwards of each before a backward (DPO)."""

import copy

import torch
from job import batch, begin, finish
from models import Net
from shards import shard

rank, _ = begin()
torch.manual_seed(7)
net = Net()
reference = shard(copy.deepcopy(net).requires_grad_(False))
policy = shard(net)
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2)
for step in range(4):
    chosen, rejected = batch(step, rank, width=8), batch(50 + step, rank, width=8)
    with torch.no_grad():
        margin = reference(chosen).sum(1) - reference(rejected).sum(1)
    loss = policy(chosen).sum(1) - policy(rejected).sum(1) - margin
    optimizer.zero_grad()
    torch.nn.functional.softplus(-loss).mean().backward()
    optimizer.step()
finish(policy, reference)
