"""DDP over an embedding whose weight is also that of the output layer."""

import torch
from job import batch, begin, finish
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Tied(nn.Module):
    """Embedding, one layer, and an output layer with the embedding's weight."""

    def __init__(self):
        super().__init__()
        self.embedding, self.middle = nn.Embedding(12, 8), nn.Linear(8, 8)
        self.out = nn.Linear(8, 12, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, ids):
        return self.out(torch.tanh(self.middle(self.embedding(ids))))


rank, _ = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Tied(), bucket_cap_mb=0.5 / 1024)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    ids = (batch(step, rank, rows=3).abs() * 5).long().clamp(max=11)
    optimizer.zero_grad()
    scores = model(ids).view(-1, 12)
    nn.functional.cross_entropy(scores, ids.view(-1)).backward()
    optimizer.step()
finish(model)
