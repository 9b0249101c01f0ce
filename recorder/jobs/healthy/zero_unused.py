"""DeepSpeed over a model with a layer that never takes part in a forward."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Unused

ARGUMENTS = ("0", "1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
engine = engines.engine_of(Unused(), int(sys.argv[1]))
for step in range(3):
    engine.backward(engine(batch(step, rank)))
    engine.step()
finish(engine.module)
