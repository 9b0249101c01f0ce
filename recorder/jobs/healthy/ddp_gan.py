"""Two DDP models that train against each other, each with an optimizer of its own."""

import torch
from job import batch, begin, finish
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank, _ = begin()
torch.manual_seed(7)
maker = DistributedDataParallel(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8)))
critic = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)))
maker_optimizer = torch.optim.Adam(maker.parameters(), lr=1e-2)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
for step in range(4):
    noise = batch(step, rank)
    made = maker(noise)
    critic_optimizer.zero_grad()
    both = critic(torch.cat([batch(50 + step, rank, width=8), made.detach()]))
    (both[2:].mean() - both[:2].mean()).backward()
    critic_optimizer.step()
    maker_optimizer.zero_grad()
    critic.requires_grad_(False)
    (-critic.module(made)).mean().backward()
    critic.requires_grad_(True)
    maker_optimizer.step()
finish(maker, critic)
