"""N3: a manual backward that raised and is tried again gets no epilogue."""

import torch
from hazard import Scale, error_of, inputs, main, make, result, step_or_error


class _RaisesOnce(torch.autograd.Function):
    failures = []

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        if _RaisesOnce.failures:
            raise ValueError(_RaisesOnce.failures.pop())
        return grad


class Raises(torch.nn.Module):
    """The backward reaches `b` and then raises before it reaches `a`."""

    def __init__(self):
        super().__init__()
        self.a, self.b = Scale(), Scale()

    def forward(self, x):
        return self.b(_RaisesOnce.apply(self.a(x))).sum()


def work():
    for stage in (1, 2, 3):
        engine = make(stage, Raises())
        _RaisesOnce.failures = ["in the middle of a backward"]
        error_of(engine(inputs(1)).backward)
        engine.zero_grad()
        error = error_of(engine(inputs(1)).backward)
        result(
            "N3",
            f"stage {stage}, loss.backward() raises and is tried again, gradient 1",
            step_or_error(engine) if error == "no error" else error,
            1.0,
        )


main(work)
