"""ZeRO-3 whose model is made under deepspeed.zero.Init, so that no rank ever holds it whole."""

import engines
import torch
from engines import deepspeed
from job import batch, begin, finish
from models import Net

rank, _ = begin()
torch.manual_seed(7)
with deepspeed.zero.Init(config_dict_or_path=engines.configuration(3)):
    model = Net()
engine = engines.engine_of(model, 3)
for step in range(4):
    engine.backward(engine(batch(step, rank, width=8)).pow(2).mean())
    engine.step()
finish(engine.module)
