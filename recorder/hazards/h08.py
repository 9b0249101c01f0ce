"""H8: accumulation divides at each output of the engine instead of once at the loss."""

import torch
from hazard import Scale, inputs, main, make, result, step


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Scale()

    def forward(self, x):
        y = self.a(x)
        return y, y


class Vector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Scale()

    def forward(self, x):
        return self.a(x)


def window(engine, backward):
    """Two micro-batches of gradient 1 each: divided once they give 1."""
    for _ in range(2):
        backward(engine)
        update = step(engine)
    return update["a"]


def mixed(engine):
    x = inputs(1)
    engine.backward(engine(x, "b") + engine.module(x, "a"))


def repeated(engine):
    first, second = engine(inputs(0.5))
    engine.backward((first + second).sum())


def after_undivided(engine):
    engine(inputs(1)).backward()


def work():
    result(
        "H8",
        "(a) engine(x) + engine.module(x), GAS 2, stage 2",
        window(make(2, gas=2), mixed),
        1.0,
    )
    result(
        "H8",
        "(b) one tensor returned twice, GAS 2, stage 2",
        window(make(2, Twice(), gas=2), repeated),
        1.0,
    )
    first, second = make(2, Vector(), gas=2), make(2, Vector(), gas=2)

    def chained(_):
        second.backward(second(first(inputs(1))).sum())
        step(second)

    result(
        "H8",
        "(c) one engine reads what another wrote, GAS 2, stage 2",
        window(first, chained),
        1.0,
    )
    engine = make(2, gas=2)
    engine.backward(engine(inputs(0)), scale_wrt_gas=False)
    step(engine)
    engine.backward(engine(inputs(0)), scale_wrt_gas=False)
    step(engine)
    result(
        "H8",
        "(d) loss.backward() after backward(scale_wrt_gas=False), GAS 2, stage 2",
        window(engine, after_undivided),
        1.0,
    )


main(work)
