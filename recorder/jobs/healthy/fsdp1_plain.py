"""The first FSDP: blocks wrapped by a policy, with its own gradient clipping."""

import functools

import torch
from job import batch, begin, finish, need
from models import Block, Net
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

need(torch_version=(2, 7))  # on 2.4 with gloo two runs end in different numbers by themselves
rank, _ = begin()
torch.manual_seed(7)
wrap = functools.partial(FullyShardedDataParallel, device_id=torch.device("cpu"))
model = wrap(Net(), auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    model.clip_grad_norm_(1.0)
    optimizer.step()
finish(model)
