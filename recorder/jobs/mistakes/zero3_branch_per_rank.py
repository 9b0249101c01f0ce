"""DeepSpeed #5066, #4094: ranks take different experts under ZeRO-3; the gathers never meet."""

import engines
import torch
from job import batch, begin, finish
from models import Net

EXPECT = r"(blocks\.\d|collective\.|gather)"


class Chosen(Net):
    """A batch takes one of the blocks."""

    def forward(self, x, number):
        return self.head(self.norm(self.blocks[number](self.inp(x))))


rank, _ = begin(10)
torch.manual_seed(7)
engine = engines.engine_of(Chosen(), 3)
for step in range(3):
    engine.backward(engine(batch(step, rank, width=8), (rank * step) % 2).pow(2).mean())
    engine.step()
finish(engine.module)
