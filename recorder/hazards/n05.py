"""N5: zero_grad leaves the gradients of a 16-bit model in the float32 partition of stage 2."""

import torch
from hazard import inputs, main, make, result, step


def work():
    engine = make(2, bf16={"enabled": True}, data_types={"grad_accum_dtype": "fp32"})
    engine.backward(engine(inputs(1).to(torch.bfloat16)))
    engine.zero_grad()
    engine.backward(engine(inputs(2).to(torch.bfloat16)))
    result(
        "N5",
        "stage 2, bf16, grad_accum_dtype fp32, gradient 1, zero_grad, gradient 2",
        step(engine)["a"],
        2.0,
    )


main(work)
