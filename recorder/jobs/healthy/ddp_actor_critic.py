"""Two DDP models and a frozen copy: rollouts without gradients, the critic steps twice, the actor once."""

import copy

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

RECORDER = "--numbers"

rank, _ = begin()
torch.manual_seed(7)
actor, critic = (DistributedDataParallel(Net()) for _ in range(2))
reference = copy.deepcopy(actor.module).requires_grad_(False)
of_actor = torch.optim.Adam(actor.parameters(), lr=1e-2)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-2)
for step in range(3):
    states = batch(step, rank, rows=4, width=8)
    actor.eval()
    with torch.inference_mode():
        old = actor.module(states).clone()
    actor.train()
    for _ in range(2):
        of_critic.zero_grad(set_to_none=True)
        critic(states).mean().pow(2).backward()
        of_critic.step()
    advantage = critic.module(states).mean().detach()
    of_actor.zero_grad(set_to_none=True)
    new = actor(states)
    ratio = (new - old).exp().mean()
    distance = (new - reference(states)).pow(2).mean()
    (-ratio * advantage + 0.1 * distance).backward()
    torch.nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
    of_actor.step()
finish(actor, critic)
