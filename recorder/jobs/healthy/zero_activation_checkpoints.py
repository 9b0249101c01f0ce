"""DeepSpeed's own activation checkpointing, partitioned over the ranks or not."""

import sys

import engines
import torch
from engines import deepspeed
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("1", "2", "3")


class Checkpointed(Net):
    """A Net whose blocks run under DeepSpeed's checkpoints, with the loss inside."""

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = deepspeed.checkpointing.checkpoint(block, h)
        return self.head(self.norm(h)).pow(2).mean()


rank, _ = begin()
torch.manual_seed(7)
deepspeed.init_distributed("gloo")
deepspeed.checkpointing.configure(None, partition_activations=False, checkpoint_in_cpu=False)
engine = engines.engine_of(Checkpointed(3), int(sys.argv[1]))
for step in range(3):
    engine.backward(engine(batch(step, rank, width=8)))
    engine.step()
finish(engine.module)
