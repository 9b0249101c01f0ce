"""DeepSpeed, engine.backward and engine.step: stages 0 to 3, with gradient clipping."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("0", "1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
engine = engines.engine_of(Net(), int(sys.argv[1]), gradient_clipping=1.0)
for step in range(4):
    engine.backward(engine(batch(step, rank, width=8)).pow(2).mean())
    engine.step()
finish(engine.module)
