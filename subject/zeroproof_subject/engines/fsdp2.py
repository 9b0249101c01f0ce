"""torch.distributed.fsdp.fully_shard."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from zeroproof_subject import capability, device
from zeroproof_subject.engine import Job
from zeroproof_subject.windows import WindowedEngine

OPTIONS = {"reshard_after_forward": True}
MISSING_IS_ZERO = False
CASES_OF_A_GROUP = 200


def units_of(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Modules that are sharded alone: those that share no parameter with another one."""
    children = [it for it in model.body.children() if any(True for _ in it.parameters())]
    if any(part.kind in ("tied", "external_use", "shared") for part in model.model.parts()):
        return []
    return children


class FsdpEngine(WindowedEngine):
    """Gradients and parameters are DTensors."""

    def __init__(self, job: Job, reshard_after_forward: bool) -> None:
        from torch.distributed.fsdp import fully_shard

        names = {id(it): name for name, it in job.model.named_parameters()}
        mesh = init_device_mesh(device.kind(job.ranks), (job.ranks,))
        for unit in units_of(job.model):
            fully_shard(unit, mesh=mesh, reshard_after_forward=reshard_after_forward)
        fully_shard(job.model, mesh=mesh, reshard_after_forward=reshard_after_forward)
        sharded = dict(job.model.named_parameters())
        job.groups = [[sharded[names[id(it)]] for it in group] for group in job.groups]
        super().__init__(job)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """set_requires_gradient_sync(False)."""
        self.module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.module.set_requires_gradient_sync(True)

    def whole(self, tensor: Tensor) -> Tensor:
        """Of all ranks."""
        full = getattr(tensor, "full_tensor", None)
        return (full() if full else tensor).detach().clone()


def make(job: Job, **options) -> FsdpEngine:
    """An engine for a job."""
    return FsdpEngine(job, **(OPTIONS | options))


def prepare() -> None:
    """Imports what every rank needs."""
    import torch.distributed.fsdp  # noqa: F401


def versions() -> dict[str, str]:
    """What findings depend on."""
    return {"torch": torch.__version__}


def capabilities(options: dict) -> dict:
    """Parameters need a dimension, and ranks the same weights at first."""
    document = capability.document(
        "fsdp2", versions(), config=capability.CONFIG, blocks=["no_sync"], ranks_differ=False
    )
    document["modules"]["custom"]["shape"] = capability.SHAPES
    return document
