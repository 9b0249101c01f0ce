"""DDP beside an exponential average and a stochastic average of its weights, with update_bn."""

import torch
from job import batch, begin, finish
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

rank, _ = begin()
torch.manual_seed(7)
net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4))
model = DistributedDataParallel(net)
ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
swa = AveragedModel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
for step in range(6):
    optimizer.zero_grad()
    model(batch(step, rank, rows=4, width=8)).pow(2).mean().backward()
    optimizer.step()
    ema.update_parameters(net)
    if step > 2:
        swa.update_parameters(net)
update_bn([batch(step, rank, rows=4, width=8) for step in range(2)], swa)
finish(model, ema)
