"""DeepSpeed's mixture of experts with expert parallelism, stages 0 and 2."""

import sys

import engines
import torch
from engines import deepspeed
from job import batch, begin, finish
from torch import nn

ARGUMENTS = ("0", "2")


class Experts(nn.Module):
    """A layer, two experts of which each rank owns one, and a head."""

    def __init__(self):
        super().__init__()
        self.inp, self.head = nn.Linear(8, 8), nn.Linear(8, 4)
        self.moe = deepspeed.moe.layer.MoE(8, nn.Linear(8, 8), num_experts=2, ep_size=2, k=1)

    def forward(self, x):
        mixed, balance, _ = self.moe(self.inp(x))
        return self.head(mixed).pow(2).mean() + 0.01 * balance


rank, _ = begin()
torch.manual_seed(7)
deepspeed.init_distributed("gloo")
model = Experts()
groups = [{"params": list(model.parameters()), "name": "all"}]
groups = deepspeed.moe.utils.split_params_into_different_moe_groups_for_optimizer(groups)
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.Adam(groups, lr=1e-2),
    config=engines.configuration(int(sys.argv[1])),
)
for step in range(3):
    engine.backward(engine(batch(step, rank, rows=6, width=8)))
    engine.step()
finish(engine.module)
