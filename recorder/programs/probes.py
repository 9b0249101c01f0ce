"""What PyTorch's private functions return; each has an answer where the function is missing."""

import torch
from .trace_writer import number


def graph_task():
    """Id of the graph task that is current on this thread, or -1."""
    current = getattr(torch._C, "_current_graph_task_id", None)
    return -1 if current is None else current()


def transforms():
    """The stack of functorch's interpreters as [[level, kind], …], the outermost first."""
    try:
        stack = torch._C._functorch.get_interpreter_stack()
    except AttributeError:
        return []
    return [[one.level(), str(one.key()).split(".")[-1]] for one in stack or ()]


def is_transforming():
    """True inside a transform of torch.func."""
    try:
        return torch._C._functorch.peek_interpreter_stack() is not None
    except AttributeError:
        return False


def node_seq(node):
    """The sequence number; -1 for that of every AccumulateGrad, None where there is none."""
    try:
        seq = node._sequence_nr()
    except (AttributeError, RuntimeError):
        return None
    return -1 if seq >= 1 << 63 else seq


def flat(tensor):
    """All elements in a list, exact for every dtype that programs use."""
    tensor = tensor.detach().to("cpu")
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.to(torch.float32)
    return [number(value) for value in tensor.reshape(-1).tolist()]


def dtype_name(dtype):
    """float32, not torch.float32."""
    return str(dtype).replace("torch.", "")
