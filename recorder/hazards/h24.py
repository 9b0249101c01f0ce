"""H24: a leaf module that runs twice in one backward enters stage 3's bucket twice."""

import torch
from deepspeed.utils import set_z3_leaf_modules
from hazard import Scale, control, error_of, inputs, main, make, result


class Leaf(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Scale()

    def forward(self, x):
        return self.a(x)


class CallsTwice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = Leaf()

    def forward(self, x):
        return self.leaf(self.leaf(x)).sum()


def work():
    for is_leaf in (False, True):
        model = CallsTwice()
        if is_leaf:
            set_z3_leaf_modules(model, [Leaf])
        engine = make(3, model)
        loss = engine(inputs(1).requires_grad_())
        error = error_of(engine.backward, loss)
        say = result if is_leaf else control
        say(
            "H24",
            f"stage 3, a module that runs twice, leaf {is_leaf}",
            error,
            "no error",
        )


main(work)
