"""The programs and what is known of each before it runs."""

from dataclasses import dataclass
from typing import Callable

import torch

PROGRAMS = []
FIRST_SEED = 1000


@dataclass
class Program:
    """One program; the same seed draws the same weights and inputs in every run."""

    name: str
    purpose: str
    run: Callable
    seed: int
    order: tuple  # tokens that the rules foretell, where they are written down
    since: tuple  # the first PyTorch that has what the program is about
    has_graph: bool  # a snapshot of the graph before each backward
    needs: str  # dist, cuda or empty


def program(name, purpose, order="", nodes=True, needs="", since=()):
    """Registers the function below under `name`."""

    def register(function):
        text, seed = " ".join(purpose.split()), FIRST_SEED + len(PROGRAMS)
        words = tuple(order.split())
        PROGRAMS.append(Program(name, text, function, seed, words, since, nodes, needs))
        return function

    return register


def sq(tensor):
    """The sum of squares: a loss whose gradient depends on every element."""
    return tensor.pow(2).sum()


def torch_version():
    """Major and minor number."""
    return tuple(int(word) for word in torch.__version__.split("+")[0].split(".")[:2])
