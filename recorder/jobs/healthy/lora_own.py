"""LoRA: small trained matrices beside frozen layers, under DDP, ZeRO-2 and ZeRO-3 (own code)."""

import sys

import torch
from job import batch, begin, finish
from models import Net
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ARGUMENTS = ("0", "2", "3")


class Adapted(nn.Module):
    """A frozen linear layer with a trained low-rank path."""

    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, 2, bias=False)
        self.up = nn.Linear(2, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


stage = int(sys.argv[1])
if stage:
    import engines
rank, _ = begin()
torch.manual_seed(7)
net = Net()
net.requires_grad_(False)
for block in net.blocks:
    block.a = Adapted(block.a)
if stage:
    engine = engines.engine_of(net, stage)
    for step in range(4):
        engine.backward(engine(batch(step, rank, width=8)).pow(2).mean())
        engine.step()
else:
    model = DistributedDataParallel(net)
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-2)
    for step in range(4):
        model(batch(step, rank, width=8)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
finish(net)
