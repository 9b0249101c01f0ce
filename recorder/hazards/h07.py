"""H7: fp16 autocast clips gradients that are still scaled."""

import torch
from hazard import inputs, main, make, result, step


class OneLinear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 1, bias=False)

    def forward(self, x):
        return self.a(x).sum() * 2.0**-12


def second_step(stage, clipping):
    """The first one overflows: its scale, 65536, is infinite in float16."""
    autocast = {"enabled": True, "dtype": "float16"}
    engine = make(stage, OneLinear(), gradient_clipping=clipping, torch_autocast=autocast)
    for _ in range(2):
        engine.backward(engine(inputs(512)))  # 0.125 an element: a norm of 0.25
        update = step(engine)
    return update["a"]


def work():
    for stage in (1, 2, 3):
        result(
            "H7",
            f"stage {stage}, fp16 autocast, gradient 0.125 of norm 0.25, "
            "without clipping and clipped at 1.0",
            [second_step(stage, 0.0), second_step(stage, 1.0)],
            [0.125, 0.125],
        )


if __name__ == "__main__":
    main(work)
