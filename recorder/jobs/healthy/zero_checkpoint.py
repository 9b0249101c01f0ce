"""DeepSpeed over checkpoints of either kind, with engine.backward; partly frozen blocks too."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Checkpointed

ARGUMENTS = (
    "1 reentrant", "2 reentrant", "3 reentrant", "3 nonreentrant", "2 nonreentrant frozen",
    "3 nonreentrant frozen",
)  # fmt: skip

rank, _ = begin()
torch.manual_seed(7)
model = Checkpointed(sys.argv[2] == "reentrant", "frozen" in sys.argv)
engine = engines.engine_of(model, int(sys.argv[1]))
for step in range(3):
    engine.backward(engine(batch(step, rank)))
    engine.step()
finish(engine.module)
