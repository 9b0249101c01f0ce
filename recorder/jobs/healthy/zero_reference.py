"""DPO: a policy engine and a frozen reference, whose engine has no optimizer; stage 3 or 2."""

import copy
import sys

import engines
import torch
from engines import deepspeed
from job import batch, begin, finish
from models import Net

ARGUMENTS = ("3", "2", "3 concatenated")

rank, _ = begin()
torch.manual_seed(7)
net, stage = Net(), int(sys.argv[1])
frozen = copy.deepcopy(net).requires_grad_(False).eval()
policy = engines.engine_of(net, stage)
if stage == 3:
    frozen, *_ = deepspeed.initialize(model=frozen, config=engines.configuration(3))
for step in range(3):
    chosen, rejected = batch(step, rank, width=8), batch(50 + step, rank, width=8)
    with torch.no_grad():
        margin = frozen(torch.cat([chosen, rejected])).sum(1)
    if "concatenated" in sys.argv:
        score = policy(torch.cat([chosen, rejected])).sum(1)
    else:
        score = torch.cat([policy(chosen).sum(1), policy(rejected).sum(1)])
    ratio = score - margin
    loss = torch.nn.functional.softplus(ratio[2:] - ratio[:2]).mean()
    policy.backward(loss)
    policy.step()
finish(policy.module)
