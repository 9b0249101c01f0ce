"""DeepSpeed in bfloat16 with float32 master weights, stages 1 to 3."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
engine = engines.engine_of(Net(), int(sys.argv[1]), bf16={"enabled": True})
for step in range(4):
    x = batch(step, rank, width=8).bfloat16()
    engine.backward(engine(x).float().pow(2).mean())
    engine.step()
finish(engine.module)
