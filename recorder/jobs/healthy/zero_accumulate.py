"""DeepSpeed with gradient_accumulation_steps 2, managed by the engine: step after each backward."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("0", "1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
engine = engines.engine_of(Net(), int(sys.argv[1]), accumulation=2)
for micro in range(6):
    engine.backward(engine(batch(micro, rank, width=8)).pow(2).mean())
    engine.step()
finish(engine.module)
