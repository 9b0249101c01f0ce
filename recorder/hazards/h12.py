"""H12: outputs inside a dataclass get no prologue, no division and no epilogue."""

import dataclasses

import torch
from hazard import Scale, error_of, inputs, main, make, result, step


@dataclasses.dataclass
class Output:
    loss: torch.Tensor


class Wrapped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Scale()

    def forward(self, x):
        return Output(self.a(x).sum())


def work():
    engine = make(2, Wrapped(), gas=2)
    for _ in range(2):
        engine.backward(engine(inputs(1)).loss)
        update = step(engine)
    result("H12", "stage 2, GAS 2, engine.backward on a dataclass's loss", update["a"], 1.0)
    engine = make(2, Wrapped())
    engine(inputs(1)).loss.backward()
    updates = {}
    error = error_of(lambda: updates.update(step(engine)))
    result(
        "H12",
        "stage 2, loss.backward() of a dataclass's loss, then step",
        updates.get("a", error),
        1.0,
    )


main(work)
