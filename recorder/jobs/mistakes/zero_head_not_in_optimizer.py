"""PyTorch #14467: the optimizer lacks parameters of the model. Here the head, under DeepSpeed.

The loss still falls, through the other layers.
"""

import engines
import torch
from engines import deepspeed
from job import batch, begin, finish
from models import Net

EXPECT = r"(head).*|never trained|optimizer"

rank, _ = begin(20)
torch.manual_seed(7)
net = Net()
params = [param for name, param in net.named_parameters() if not name.startswith("head")]
engine, *_ = deepspeed.initialize(
    model=net, optimizer=torch.optim.Adam(params, lr=1e-2), config=engines.configuration(2)
)
for step in range(3):
    engine.backward(engine(batch(step, rank, width=8)).pow(2).mean())
    engine.step()
finish(engine.module)
