"""PyTorch #104336: the model is converted after it was wrapped, and its parameters are new tensors.

DDP's hooks stay on the old ones: no gradient is reduced. (TrainCheck: pytorch-104336.)
"""

import torch
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel

EXPECT = r"(no collective|not reduced|no_reduction|never reduced|no reduction|replaced)"

rank, _ = begin()
torch.manual_seed(7)
torch.__future__.set_overwrite_module_params_on_conversion(True)
model = DistributedDataParallel(Net())
model.double()
model.float()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
