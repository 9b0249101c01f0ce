"""Two dimensions: tensor parallel inside pairs, DDP of the rest of the model between them."""

import torch
from job import batch, begin, finish, need
from models import Net
from torch.distributed.device_mesh import init_device_mesh

need(torch_version=(2, 7))
from torch.distributed.tensor import parallel as tp
from torch.distributed.tensor.parallel import ddp as tp_ddp
from torch.nn.parallel import DistributedDataParallel

WORLD = 4

rank, _ = begin()
torch.manual_seed(7)
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
net = Net()
for block in net.blocks:
    tp.parallelize_module(block, mesh["tp"], {"a": tp.ColwiseParallel(), "b": tp.RowwiseParallel()})
tp_ddp._pre_dp_module_transform(net)
model = DistributedDataParallel(net, process_group=mesh["dp"].get_group())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, foreach=False)
for step in range(3):
    optimizer.zero_grad()
    model(batch(step, rank // 2, width=8)).pow(2).mean().backward()
    optimizer.step()
finish(model)
