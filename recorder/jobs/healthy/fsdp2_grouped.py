"""FSDP2 units of several modules: all of them run, only one does, or one in chunks with a loss each."""

import sys

import torch
from job import batch, begin, finish, need
from models import Net
from torch.distributed.device_mesh import init_device_mesh

need(torch_version=(2, 7))

from torch.distributed.fsdp import fully_shard

ARGUMENTS = ("all", "part", "chunks")
CHUNKS = 3


class Trunk(torch.nn.Module):
    """A Net whose head runs where its caller wants it to."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, with_head=True):
        h = self.net.inp(x)
        for block in self.net.blocks:
            h = block(h)
        return self.net.head(self.net.norm(h)) if with_head else h


rank, world = begin()
kind = sys.argv[1]
if kind == "chunks":
    need(torch_version=(2, 15))
torch.manual_seed(7)
net = Net(3)
mesh = init_device_mesh("cpu", (world,))
for block in net.blocks:
    fully_shard(block, mesh=mesh)
fully_shard([net.norm, net.head], mesh=mesh, reshard_after_forward=kind != "chunks")
model = fully_shard(Trunk(net), mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    x = batch(step, rank, rows=6, width=8)
    if kind == "all":
        model(x).pow(2).mean().backward()
    elif kind == "part":
        net.norm(model(x, with_head=False)).pow(2).mean().backward()
    else:
        hidden = model(x, with_head=False)
        leaf = hidden.detach().requires_grad_()
        model.set_is_last_backward(False)
        model.set_requires_gradient_sync(False)
        for number, chunk in enumerate(leaf.chunk(CHUNKS)):
            if number == CHUNKS - 1:
                model.set_requires_gradient_sync(True)
            (net.head(net.norm(chunk)).pow(2).mean() / CHUNKS).backward()
        model.set_is_last_backward(True)
        hidden.backward(leaf.grad)
    optimizer.step()
finish(model)
