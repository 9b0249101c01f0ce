"""DeepSpeed with evaluation under no_grad between steps, and a loss averaged over the ranks."""

import sys

import engines
import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
engine = engines.engine_of(Net(), int(sys.argv[1]))
for step in range(4):
    engine.train()
    engine.backward(engine(batch(step, rank, width=8)).pow(2).mean())
    engine.step()
    engine.eval()
    with torch.no_grad():
        total = engine(batch(90, rank, width=8)).pow(2).mean()
    dist.all_reduce(total)
finish(engine.module)
