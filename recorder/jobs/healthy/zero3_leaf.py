"""ZeRO-3 with a block that is declared a leaf: it is gathered as a whole."""

import engines
import torch
from engines import deepspeed
from job import batch, begin, finish
from models import Block, WithLeafBlock

rank, _ = begin()
torch.manual_seed(7)
model = WithLeafBlock()
deepspeed.utils.set_z3_leaf_modules(model, [Block])
engine = engines.engine_of(model, 3)
for step in range(3):
    engine.backward(engine(batch(step, rank)))
    engine.step()
finish(engine.module)
