"""N10: a forward returns a loss and what it is made of, as (loss, logits); accumulation."""

import torch
from hazard import Scale, control, inputs, main, make, result, step

GAS = 2


class LossAndLogits(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Scale()

    def forward(self, x, has_logits):
        logits = self.a(x)
        return (logits.sum(), logits) if has_logits else logits.sum()


def applied(stage, backward, has_logits):
    """What a step applies of two micro-batches with gradients of 1."""
    engine = make(stage, LossAndLogits(), gas=GAS)
    update = {}
    for _ in range(GAS):
        outputs = engine(inputs(1), has_logits)
        loss = outputs[0] if has_logits else outputs
        engine.backward(loss) if backward == "engine.backward" else loss.backward()
        update = step(engine)
    return update["a"]


def work():
    for backward in ("engine.backward", "loss.backward"):
        for stage in (1, 2, 3):
            case = f"{backward}, GAS {GAS}, stage {stage}, gradient 1"
            control("N10", f"{case}, the loss alone", applied(stage, backward, False), 1.0)
            result("N10", f"{case}, a loss and its logits", applied(stage, backward, True), 1.0)


main(work)
