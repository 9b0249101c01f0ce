"""N9: zero_grad in the middle of a window leaves what was reduced of it."""

import torch
from hazard import control, inputs, main, make, result, step

# Stage 1 sums in .grad, which zero_grad drops, but for sums of another dtype than the model's.
APART = {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}
CASES = (
    ("stage 1, bf16, grad_accum_dtype fp32", 1, 1, APART),
    ("stage 2, GAS 2", 2, 2, {}),
    ("stage 3", 3, 1, {}),
    ("stage 3, GAS 2", 3, 2, {}),
)


def applied(stage, gas, config):
    """What a step applies of a gradient of 1 before zero_grad and one of 2 after it."""
    engine = make(stage, gas=gas, **config)
    dtype = torch.bfloat16 if "bf16" in config else torch.float32
    engine.backward(engine(inputs(gas * 1).to(dtype)))
    if gas == 2:
        engine.step()  # counts the micro-batch
    engine.zero_grad()
    engine.backward(engine(inputs(gas * 2).to(dtype)))
    return step(engine)["a"]


def work():
    control("N9", "stage 1, GAS 2, gradient 1, zero_grad, gradient 2", applied(1, 2, {}), 2.0)
    for name, stage, gas, config in CASES:
        case = f"{name}, gradient 1, zero_grad, gradient 2"
        result("N9", case, applied(stage, gas, config), 2.0)


main(work)
