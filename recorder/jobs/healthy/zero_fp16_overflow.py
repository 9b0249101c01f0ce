"""DeepSpeed in fp16 whose loss scale overflows, shrinks and grows again."""

import sys

import engines
import torch
from deepspeed.accelerator import get_accelerator
from engines import deepspeed
from job import batch, begin, finish
from models import Mlp

ARGUMENTS = ("1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
get_accelerator().is_fp16_supported = lambda: True  # slow here, and good enough
deepspeed.init_distributed("gloo")
fp16 = {"enabled": True, "initial_scale_power": 20, "loss_scale_window": 2, "hysteresis": 1}
engine = engines.engine_of(Mlp(), int(sys.argv[1]), accumulation=2, fp16=fp16)
for step in range(12):
    engine.backward(engine(100 * batch(step, rank).half()))
    engine.step()
finish(engine.module)
