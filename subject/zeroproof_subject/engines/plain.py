"""The unsharded truth: each rank a replica in a thread, gradients averaged at the step."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

from zeroproof_subject.engine import Job, Truth, trained_parameters
from zeroproof_subject.models import TiledNode
from zeroproof_subject.windows import WindowedEngine


class Replicas:
    """Where the threads of all replicas meet, and leave tensors for one another."""

    def __init__(self, ranks: int) -> None:
        self.barrier = threading.Barrier(ranks)
        self.left: list[dict[str, Tensor | None]] = [{} for _ in range(ranks)]

    def exchange(self, rank: int, tensors: dict[str, Tensor | None]) -> list[dict[str, Any]]:
        """What every rank gave, in the order of ranks."""
        self.left[rank] = tensors
        self.barrier.wait()
        all_of_them = list(self.left)
        self.barrier.wait()
        return all_of_them


class PlainEngine(WindowedEngine):
    """One replica. Autograd, gradients and optimizer are PyTorch's own."""

    def __init__(self, job: Job, replicas: Replicas, truth: Truth) -> None:
        super().__init__(job)
        self.replicas = replicas
        self.truth = truth
        self.trained_at_first = set(trained_parameters(job.model))
        for module in job.model.modules():
            if isinstance(module, TiledNode):
                module.factor = 1.0 / self.settings.accumulation_steps
        self.take_over_first_rank()

    def take_over_first_rank(self) -> None:
        """Engines begin with the weights of rank 0."""
        named = dict(self.job.model.named_parameters())
        first = self.replicas.exchange(self.job.rank, {n: it.detach() for n, it in named.items()})
        with torch.no_grad():
            for name, parameter in named.items():
                parameter.copy_(first[0][name].clone())
        self.replicas.barrier.wait()

    def tensor_backward(self, loss: Tensor, **options: bool) -> None:
        """Divided where the engine does so."""
        steps = self.settings.accumulation_steps if self.truth.divides_tensor_backward else 1
        (loss / steps).backward(**options)

    def gradients(self) -> dict[str, Tensor | None]:
        """Averaged over ranks."""
        own = {name: parameter.grad for name, parameter in self.job.model.named_parameters()}
        of_all = self.replicas.exchange(self.job.rank, own)
        return {name: self.mean(name, [one[name] for one in of_all]) for name in own}

    def mean(self, name: str, gradients: list[Tensor | None]) -> Tensor | None:
        """None where no rank has one; and zeros for the ranks that have none."""
        there = [gradient for gradient in gradients if gradient is not None]
        if there:
            return torch.stack(there).sum(0) / self.job.ranks
        if self.truth.missing_is_zero and name in self.trained_at_first:
            return torch.zeros_like(dict(self.job.model.named_parameters())[name])
        return None

    def step(self) -> None:
        """The same on every replica."""
        if self.will_step():
            averaged = self.gradients()
            for name, parameter in self.job.model.named_parameters():
                parameter.grad = averaged[name]
        super().step()


def versions() -> dict[str, str]:
    """What findings depend on."""
    return {"torch": torch.__version__}
