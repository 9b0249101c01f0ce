"""DeepSpeed with loss.backward() in place of engine.backward, over checkpoints of either kind."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Checkpointed

ARGUMENTS = ("1 reentrant", "2 nonreentrant", "3 reentrant", "3 nonreentrant")

rank, _ = begin()
torch.manual_seed(7)
engine = engines.engine_of(Checkpointed(sys.argv[2] == "reentrant"), int(sys.argv[1]))
for step in range(3):
    engine(batch(step, rank)).backward()
    engine.step()
finish(engine.module)
