"""Expert parallel: each rank owns an expert; tokens travel by all_to_all_single with data-dependent
splits, which differ between the ranks. The dense part is in DDP."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as exchange
from job import batch, begin, finish
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Routed(nn.Module):
    """A gate sends each token to the expert of one rank."""

    def __init__(self, world):
        super().__init__()
        self.inp, self.gate, self.head = nn.Linear(8, 8), nn.Linear(8, world), nn.Linear(8, 4)

    def forward(self, x, expert):
        h = self.inp(x)
        weight, chosen = self.gate(h).softmax(-1).max(-1)
        order = chosen.argsort(stable=True)
        sent = torch.bincount(chosen, minlength=dist.get_world_size())
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        sent, received = sent.tolist(), received.tolist()
        tokens = torch.empty(sum(received), 8)
        tokens = exchange.all_to_all_single(tokens, h[order], received, sent)
        back = exchange.all_to_all_single(torch.empty(len(x), 8), expert(tokens), sent, received)
        mixed = torch.zeros_like(h).index_copy(0, order, back) * weight.unsqueeze(-1)
        return self.head(h + mixed)


rank, world = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Routed(world))
torch.manual_seed(100 + rank)
expert = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
optimizer = torch.optim.AdamW([*model.parameters(), *expert.parameters()], lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, rows=7 + rank, width=8), expert).pow(2).mean().backward()
    optimizer.step()
finish(model, expert)
