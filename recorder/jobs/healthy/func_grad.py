"""Functional training: torch.func.grad, and one all-reduce a gradient by hand."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net
from torch.func import functional_call, grad

rank, world = begin()
torch.manual_seed(7)
model = Net()
params = {name: param.detach() for name, param in model.named_parameters()}


def loss(values, x):
    """The loss as a function of the parameters."""
    return functional_call(model, values, (x,)).pow(2).mean()


for step in range(4):
    gradients = grad(loss)(params, batch(step, rank, width=8))
    for name, gradient in gradients.items():
        dist.all_reduce(gradient)
        params[name] = params[name] - 1e-2 * gradient / world
finish(params.values())
