"""H10: a backward inside forward (a tiled loss) sees no accumulation factor and no loss scale."""

import torch
from hazard import Scale, fp16, inputs, main, make, result, step


class Tile(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layer, x):
        with torch.enable_grad():
            layer(x.detach()).sum().backward()
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None, grad


class Tiled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Scale(), Scale()

    def forward(self, x):
        return self.b(Tile.apply(self.a, x)).sum()


def work():
    engine = make(2, Tiled(), gas=2)
    for _ in range(2):
        engine.backward(engine(inputs(1)))
        update = step(engine)
    result(
        "H10",
        "stage 2, GAS 2, a inside a tile, b outside",
        update,
        {"a": 1.0, "b": 1.0},
    )
    engine = make(2, Tiled(), fp16=fp16(loss_scale=8))
    engine.backward(engine(inputs(1, engine)))
    result("H10", "stage 2, fp16, loss_scale 8", step(engine), {"a": 1.0, "b": 1.0})


main(work)
