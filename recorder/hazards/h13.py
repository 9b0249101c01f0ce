"""H13: a parameter used in two reentrant checkpoints is refused."""

import torch
from hazard import Scale, error_of, inputs, main, make, result
from torch.utils.checkpoint import checkpoint


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Scale()

    def forward(self, x):
        for _ in range(2):
            x = checkpoint(self.a, x, use_reentrant=True)
        return x.sum()


def work():
    for stage in (2, 3):
        engine = make(stage, Tied())
        loss = engine(inputs(1).requires_grad_())
        result(
            "H13",
            f"stage {stage}, one layer in two reentrant checkpoints",
            error_of(engine.backward, loss),
            "no error",
        )


main(work)
