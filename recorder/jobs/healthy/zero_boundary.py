"""DeepSpeed whose caller sets the boundary and steps there only, as accelerate does."""

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
    engine.set_gradient_accumulation_boundary(is_boundary=micro % 2 == 1)
    engine.backward(engine(batch(micro, rank, width=8)).pow(2).mean())
    if micro % 2 == 1:
        engine.step()
finish(engine.module)
