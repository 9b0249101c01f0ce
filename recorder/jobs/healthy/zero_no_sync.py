"""DeepSpeed stages 0 and 1: micro-batches under engine.no_sync, then one that is reduced."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("0", "1")

rank, _ = begin()
torch.manual_seed(7)
engine = engines.engine_of(Net(), int(sys.argv[1]), accumulation=1)
for step in range(3):
    with engine.no_sync():
        for micro in range(2):
            engine.backward(engine(batch(3 * step + micro, rank, width=8)).pow(2).mean() / 3)
    engine.backward(engine(batch(3 * step + 2, rank, width=8)).pow(2).mean() / 3)
    engine.step()
finish(engine.module)
