"""N7: torch.func.grad over an engine of stage 3 ends in PyTorch's internal assertion or a crash."""

import torch
from hazard import error_of, inputs, main, make, may_crash, result

CASE = "stage 3, torch.func.grad(engine)"
SYMPTOM = "PyTorch's INTERNAL ASSERT FAILED, or SIGSEGV"
EXPECTED = "no error, or one that DeepSpeed or PyTorch means to raise"


def work():
    engine = make(3)
    may_crash("N7", CASE, SYMPTOM, EXPECTED)
    error = error_of(torch.func.grad(lambda x: engine(x)), inputs(1))
    is_shown = "INTERNAL ASSERT" in error
    result("N7", CASE, SYMPTOM if is_shown else error, EXPECTED, is_shown)


main(work)
