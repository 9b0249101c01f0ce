"""An optimizer a parameter, each of which reduces and steps in its parameter's hook."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net

rank, world = begin()
torch.manual_seed(7)
net = Net()
optimizers = {param: torch.optim.SGD([param], lr=1e-2) for param in net.parameters()}


def reduce_and_step(param):
    """What FSDP-less single-file trainers do to save the memory of gradients."""
    dist.all_reduce(param.grad)
    param.grad.div_(world)
    optimizers[param].step()
    optimizers[param].zero_grad()


for param in net.parameters():
    dist.broadcast(param.data, 0)
    param.register_post_accumulate_grad_hook(reduce_and_step)
for step in range(4):
    net(batch(step, rank, width=8)).pow(2).mean().backward()
finish(net)
