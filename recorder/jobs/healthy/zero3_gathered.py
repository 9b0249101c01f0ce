"""ZeRO-3 with parameters gathered by hand: to set some before, to read all between and after."""

import engines
import torch
from engines import deepspeed
from job import batch, begin, finish
from models import Net

rank, _ = begin()
torch.manual_seed(7)
engine = engines.engine_of(Net(), 3)
params = list(engine.module.parameters())
with deepspeed.zero.GatheredParameters(engine.module.head.parameters(), modifier_rank=0):
    if rank == 0:
        engine.module.head.weight.data.mul_(0.5)
for step in range(4):
    engine.backward(engine(batch(step, rank, width=8)).pow(2).mean())
    engine.step()
    if step == 1:
        with deepspeed.zero.GatheredParameters([engine.module.norm.weight]):
            print(f"norm {float(engine.module.norm.weight.sum()):.3f}", flush=True)
with deepspeed.zero.GatheredParameters(params):
    whole = [param.detach().clone() for param in params]
finish(whole)
