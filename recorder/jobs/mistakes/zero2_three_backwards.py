"""open-instruct #1498: three backwards before a step with gradient_accumulation_steps 1, ZeRO-2."""

import engines
import torch
from job import batch, begin, finish
from models import Net

EXPECT = r"(overwritten|backwards|accumulat|P28|P30)"

rank, _ = begin(20)
torch.manual_seed(7)
engine = engines.engine_of(Net(), 2)
for step in range(3):
    for micro in range(3):
        engine.backward(engine(batch(3 * step + micro, rank, width=8)).pow(2).mean())
    engine.step()
finish(engine.module)
