"""Accumulation that the user manages, with an offloaded optimizer: windows of 2 and 3."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
stage, micro = int(sys.argv[1]), 0
section = engines.zero(stage, offload_optimizer={"device": "cpu"})
engine = engines.engine_of(
    Net(), stage, zero_optimization=section, managed_gradient_accumulation=False
)
for window in (2, 3, 2):
    for _ in range(window):
        engine.backward(engine(batch(micro, rank, width=8)).pow(2).mean() / window)
        micro += 1
    engine.step()
finish(engine.module)
