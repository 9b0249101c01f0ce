"""N7: torch.func.grad over an engine of stage 3 ends in PyTorch's internal assertion or a crash."""

import torch
from hazard import error_of, inputs, main, make, may_crash, result

CASE = "stage 3, torch.func.grad(engine)"
EXPECTED = "no error, or one that DeepSpeed or PyTorch means to raise"


def work():
    engine = make(3)
    may_crash("N7", CASE, EXPECTED)
    error = error_of(torch.func.grad(lambda x: engine(x)), inputs(1))
    result("N7", CASE, error, EXPECTED, "INTERNAL ASSERT" in error)


main(work)
