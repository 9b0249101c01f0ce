"""DeepSpeed whose optimizer state is offloaded to the host, with PyTorch's Adam."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("2", "3")

rank, _ = begin()
torch.manual_seed(7)
stage = int(sys.argv[1])
section = engines.zero(stage, offload_optimizer={"device": "cpu"})
engine = engines.engine_of(Net(), stage, accumulation=2, zero_optimization=section)
for micro in range(6):
    engine.backward(engine(batch(micro, rank, width=8)).pow(2).mean())
    engine.step()
finish(engine.module)
