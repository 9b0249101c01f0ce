"""One loss of two engines, differentiated by the first; both step."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
first, second = (engines.engine_of(Net(), int(sys.argv[1])) for _ in range(2))
for step in range(3):
    x = batch(step, rank, width=8)
    first.backward(first(x).pow(2).mean() + 2 * second(x).pow(2).mean())
    first.step()
    second.step()
finish(first.module, second.module)
