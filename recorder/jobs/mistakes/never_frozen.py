"""mmpretrain #702: layers that a configuration freezes are trained, as the freeze is never called.

(TrainCheck: mmpretrain-702.)
"""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(frozen|freeze)"
UNSEEN = "the trace holds what is trained; what should be frozen is in the user's configuration"


class Staged(Net):
    """Freezes its first stages in train(), which is never called."""

    def __init__(self, frozen_stages):
        super().__init__()
        self.frozen_stages = frozen_stages

    def train(self, mode=True):
        super().train(mode)
        for block in self.blocks[: self.frozen_stages]:
            block.requires_grad_(False)
        return self


rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Staged(frozen_stages=1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
