"""DeepSpeed #8224: an encoder runs in the engine's forward and past it; ZeRO-2, accumulation 2.

Its gradients are scaled wrongly on 0.18.9; on 0.19.8 the numbers are right.
"""

import engines
import torch
from job import batch, begin, finish
from torch import nn

EXPECT = r"(enc|past the engine|twice|forward)"
UNSEEN = "DeepSpeed 0.19.8 computes it rightly; 0.18.9 does not"


class Encoded(nn.Module):
    """An encoder and a head."""

    def __init__(self):
        super().__init__()
        self.enc, self.head = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(torch.tanh(self.enc(x)))


rank, _ = begin(20)
torch.manual_seed(7)
engine = engines.engine_of(Encoded(), 2, accumulation=2)
for micro in range(4):
    x, extra = batch(micro, rank, width=8), batch(60 + micro, rank, width=8)
    loss = engine(x).pow(2).mean() + engine.module.enc(extra).pow(2).mean()
    engine.backward(loss)
    engine.step()
finish(engine.module)
