"""Functions on a stack: of an error, or of a rank that hangs. Without numbers of lines."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass

OURS = "/zeroproof_subject/"
# Below them, torch only passes an error on.
PASSING = re.compile(r"torch/(_tensor|autograd/|nn/modules/module|utils/|_dynamo/)")
# The innermost first: a frame of the engine says more than one of torch.
FRAMEWORKS = ("deepspeed", "megatron", "torch")


def name_of(path: str, function: str) -> str:
    """`deepspeed/runtime/engine.py:step`; empty for a file of no framework."""
    for framework in FRAMEWORKS:
        _, found, below = path.rpartition(f"/{framework}/")
        if found:
            return f"{framework}/{below}:{function}"
    return ""


def frame_of(error: BaseException) -> str:
    """The framework's function that raised it, as far as it is known."""
    frames = traceback.extract_tb(error.__traceback__)
    names = [name_of(it.filename, it.name) for it in reversed(frames) if OURS not in it.filename]
    for framework in FRAMEWORKS:
        for name in names:
            if name.startswith(framework) and not PASSING.match(name):
                return name
    return ""


@dataclass(frozen=True)
class Stack:
    """The functions in which a rank is, the innermost first."""

    names: tuple[tuple[str, str], ...]  # path and function

    @property
    def statement(self) -> str:
        """The kind of the program's statement that runs; empty: none."""
        for path, function in self.names:
            if path.endswith("/interpreter.py") and function.startswith("do_"):
                return function.removeprefix("do_").replace("body", "")
        return ""

    def place(self) -> str:
        """The collective, and the engine's function that waits in it."""
        named = [name_of(*it) for it in self.names]
        collective = [it for it in named if "distributed_c10d.py:" in it]
        engine = [it for it in named if it and "torch/" not in it] or collective
        parts = [it.rpartition(":")[2] for it in collective[:1]] + engine[:1]
        return " of ".join(dict.fromkeys(parts)) or "elsewhere"

    def text(self) -> str:
        """The innermost functions."""
        shown = [f"{path.rpartition('/')[2]}:{function}" for path, function in self.names[:8]]
        return " < ".join(shown)


def stack_of(text: str) -> Stack:
    """Of the lines of faulthandler: `File "PATH", line N in FUNCTION`."""
    found = re.findall(r'File "([^"]+)", line \d+ in (\S+)', text)
    return Stack(tuple(found))
