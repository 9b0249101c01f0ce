"""accelerate #3552: steps are taken at boundaries that were not passed to the engine."""

import engines
import torch
from job import batch, begin, finish
from models import Net

EXPECT = r"(boundar|accumulat|step)"

rank, _ = begin(20)
torch.manual_seed(7)
engine = engines.engine_of(Net(), 2, accumulation=4)
for micro in range(6):
    engine.backward(engine(batch(micro, rank, width=8)).pow(2).mean())
    if micro % 2 == 1:
        engine.step()
finish(engine.module)
