"""H11: an exception inside a module's forward leaves it on stage 3's module stack."""

import torch
from deepspeed.runtime.zero import parameter_offload
from hazard import Scale, error_of, inputs, main, make, result


class Throwing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.throws = Scale(), True

    def forward(self, x):
        y = self.a(x)
        if self.throws:
            raise ValueError("in the middle of a forward")
        return y.sum()


def work():
    engine = make(3, Throwing())
    stack = parameter_offload.FWD_MODULE_STACK
    error_of(engine, inputs(1))
    engine.module.throws = False
    engine.backward(engine(inputs(1)))
    result(
        "H11",
        "stage 3, modules on the stack after a failed forward and a clean one",
        len(stack),
        0,
    )


main(work)
