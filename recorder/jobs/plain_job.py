"""Plain PyTorch, one process. Run: python -m zeroproof_recorder run plain_job.py SCENARIO"""

import sys

import models
import torch
from job import batch

SCENARIOS = {
    "plain_mlp": lambda: models.Mlp(),
    "plain_ckpt_reentrant": lambda: models.Checkpointed(True),
    "plain_ckpt_nonreentrant": lambda: models.Checkpointed(False),
    "plain_two_losses_retain": lambda: models.TwoHeads(),
    "plain_undefined_grad": lambda: models.UndefinedGradient(),
}


def main(scenario, steps=2):
    """Trains a few steps."""
    torch.manual_seed(7)
    model = SCENARIOS[scenario]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(batch(step))
        if isinstance(loss, tuple):
            loss[0].backward(retain_graph=True)
            loss[1].backward()
        else:
            loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(*sys.argv[1:2])
