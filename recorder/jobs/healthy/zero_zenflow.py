"""ZenFlow: the important columns of a gradient are applied at once, others later on the host."""

import sys

import engines
import torch
from engines import deepspeed
from job import batch, begin, finish, need
from models import Net

ARGUMENTS = ("1", "2")  # stage 3 asks for a CUDA device

need("deepspeed.runtime.zenflow")


class HostAdam(torch.optim.AdamW):
    """PyTorch's Adam in the place of DeepSpeed's own for the host, which would be compiled."""

    def step(self, step_id=None, closure=None):
        return super().step(closure)


rank, _ = begin()
torch.manual_seed(7)
stage, net = int(sys.argv[1]), Net()
flow = {"topk_ratio": 0.25, "select_strategy": "step", "select_interval": 2, "update_interval": 2}
section = engines.zero(stage, offload_optimizer={"device": "cpu"}, zenflow=flow)
# The optimizer of the important columns is made of this section, that of the others is given.
columns = {"type": "AdamW", "params": {"lr": 1e-2}}
config = engines.configuration(stage, zero_optimization=section, optimizer=columns)
optimizer = HostAdam(net.parameters(), lr=1e-2)
engine, *_ = deepspeed.initialize(model=net, optimizer=optimizer, config=config)
for step in range(5):
    engine.backward(engine(batch(step, rank, width=8)).pow(2).mean())
    engine.step()
finish(engine.module)
