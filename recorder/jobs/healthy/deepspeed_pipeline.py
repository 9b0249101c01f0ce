"""DeepSpeed's own pipeline: two stages, four micro-batches."""

import engines
import torch
from engines import deepspeed
from job import batch, begin, finish
from torch import nn

rank, _ = begin()
torch.manual_seed(7)
deepspeed.init_distributed("gloo")
layers = [layer for _ in range(4) for layer in (nn.Linear(8, 8), nn.Tanh())]
model = deepspeed.pipe.PipelineModule(
    layers, num_stages=2, loss_fn=nn.MSELoss(), partition_method="uniform"
)
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=1e-2),
    config={**engines.configuration(0, accumulation=4), "train_batch_size": 8},
)
pairs = iter((batch(n, 0, width=8), batch(70 + n, 0, width=8)) for n in range(99))
for _ in range(3):
    engine.train_batch(data_iter=pairs)
finish(model)
