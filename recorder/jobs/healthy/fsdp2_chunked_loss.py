"""FSDP2 whose loss is taken chunk by chunk, a backward each, and then the trunk's backward.

The head is reduced with the last chunk alone, as trainers with a large vocabulary do.
"""

import torch
from job import batch, begin, finish
from models import Net
from shards import fully_shard, shard

CHUNKS = 2


def chunked_backward(model, hidden, target):
    """Gradients of the head, chunk by chunk; then those of the trunk."""
    leaf = hidden.detach().requires_grad_()
    total = 0.0
    for number, (rows, words) in enumerate(zip(leaf.chunk(CHUNKS), target.chunk(CHUNKS)), 1):
        model.head.set_requires_gradient_sync(number == CHUNKS)
        loss = torch.nn.functional.cross_entropy(model.head(rows), words) / CHUNKS
        loss.backward()
        total += loss.detach()
    hidden.backward(leaf.grad)
    return total


class Trunk(Net):
    """The net without its head, which the loss applies."""

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = block(h)
        return self.norm(h)


rank, _ = begin()
torch.manual_seed(7)
model = Trunk(2)
fully_shard(model.head)
model = shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    target = torch.arange(4) % 4
    chunked_backward(model, model(batch(step, rank, rows=4, width=8)), target)
    optimizer.step()
finish(model)
