"""Two engines that train in turns, each with losses of its own (an actor and a critic)."""

import sys

import engines
import torch
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
actor, critic = (engines.engine_of(Net(), int(sys.argv[1])) for _ in range(2))
for step in range(3):
    x = batch(step, rank, width=8)
    value = critic(x)
    critic.backward(value.pow(2).mean())
    critic.step()
    actor.backward((actor(x) * value.detach()).mean())
    actor.step()
finish(actor.module, critic.module)
