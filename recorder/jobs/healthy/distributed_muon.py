"""Data parallelism by hand around an optimizer whose ranks share the work and gather its updates."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net


class SharedMuon(torch.optim.Optimizer):
    """Each rank orthogonalises its share of the momenta; the updates are gathered in the step."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            params = group["params"]
            for first in range(0, len(params), dist.get_world_size()):
                self._update(params[first : first + dist.get_world_size()], group["lr"])

    def _update(self, params, lr):
        rank, world = dist.get_rank(), dist.get_world_size()
        shape = params[0].shape
        own = torch.zeros(shape)
        if rank < len(params):
            left, _, right = torch.linalg.svd(params[rank].grad, full_matrices=False)
            own = left @ right
        updates = [torch.zeros(shape) for _ in range(world)]
        dist.all_gather(updates, own)
        for param, update in zip(params, updates):
            param.add_(update, alpha=-lr)


rank, world = begin()
torch.manual_seed(7)
net = Net(3)
squares = [param for param in net.parameters() if param.shape == (16, 16)]
known = {id(param) for param in squares}
others = [param for param in net.parameters() if id(param) not in known]
optimizers = [SharedMuon(squares, 1e-2), torch.optim.AdamW(others, lr=1e-2)]
for step in range(3):
    net(batch(step, rank, width=8)).pow(2).mean().backward()
    for param in net.parameters():
        dist.all_reduce(param.grad, op=dist.ReduceOp.SUM)
        param.grad.div_(world)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
finish(net)
