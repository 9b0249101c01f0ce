"""A loss that is computed and differentiated tile by tile inside the forward, as ALST does."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Tiled

ARGUMENTS = ("1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
engine = engines.engine_of(Tiled(), int(sys.argv[1]))
for step in range(3):
    engine.backward(engine(batch(step, rank, rows=4)))
    engine.step()
finish(engine.module)
