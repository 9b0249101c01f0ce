"""DDP over checkpoints that keep some operations, and checkpoint_sequential."""

import functools
import sys

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)

ARGUMENTS = ("selective", "sequential")


def policy(_, op, *args, **kwargs):
    """Products are kept, the rest is computed again."""
    is_product = op in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
    return CheckpointPolicy.MUST_SAVE if is_product else CheckpointPolicy.PREFER_RECOMPUTE


class Checkpointed(Net):
    """A Net whose blocks run under checkpoints."""

    def forward(self, x):
        h = self.inp(x)
        if sys.argv[1] == "sequential":
            h = checkpoint_sequential(self.blocks, 2, h, use_reentrant=False)
        else:
            contexts = functools.partial(create_selective_checkpoint_contexts, policy)
            for block in self.blocks:
                h = checkpoint(block, h, use_reentrant=False, context_fn=contexts)
        return self.head(self.norm(h))


rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Checkpointed(4), bucket_cap_mb=2 / 1024)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
