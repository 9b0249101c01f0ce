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
    return engine(x, "b") + engine.module(x, "a")


def repeated(engine):
    first, second = engine(inputs(0.5))
    return (first + second).sum()


def by_engine(loss_of):
    """The loss, and the engine's own backward of it."""
    return lambda engine: engine.backward(loss_of(engine))


def by_hand(loss_of):
    """The loss, and its own backward."""
    return lambda engine: loss_of(engine).backward()


def after_undivided(engine):
    engine(inputs(1)).backward()


def chained_window(backward_of):
    """What the first engine applies of a loss that the second made of its output."""
    first, second = make(2, Vector(), gas=2), make(2, Vector(), gas=2)

    def backward(_):
        backward_of(second)(second(first(inputs(1))).sum())
        step(second)

    return window(first, backward)


def work():
    for word, call in (("engine.backward", by_engine), ("loss.backward", by_hand)):
        result(
            "H8",
            f"(a) {word}, engine(x) + engine.module(x), GAS 2, stage 2",
            window(make(2, gas=2), call(mixed)),
            1.0,
        )
        result(
            "H8",
            f"(b) {word}, one tensor returned twice, GAS 2, stage 2",
            window(make(2, Twice(), gas=2), call(repeated)),
            1.0,
        )
    for word, call in (
        ("engine.backward", lambda engine: engine.backward),
        ("loss.backward", lambda _: torch.Tensor.backward),
    ):
        result(
            "H8",
            f"(c) {word}, one engine reads what another wrote, GAS 2, stage 2",
            chained_window(call),
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
