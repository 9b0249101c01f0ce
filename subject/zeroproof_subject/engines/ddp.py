"""torch.nn.parallel.DistributedDataParallel."""

from __future__ import annotations

import contextlib

import torch
from torch.nn.parallel import DistributedDataParallel

from zeroproof_subject import capability
from zeroproof_subject.engine import Job
from zeroproof_subject.windows import WindowedEngine

OPTIONS = {"bucket_bytes": 64, "gradient_as_bucket_view": False}
MISSING_IS_ZERO = False
CASES_OF_A_GROUP = 500


class DdpEngine(WindowedEngine):
    """Every backward outside of no_sync() averages gradients."""

    def __init__(self, job: Job, bucket_bytes: int, gradient_as_bucket_view: bool) -> None:
        super().__init__(job)
        self.module = DistributedDataParallel(
            job.model,
            find_unused_parameters=True,
            gradient_as_bucket_view=gradient_as_bucket_view,
            bucket_cap_mb=bucket_bytes / 2**20,
        )

    def no_sync(self) -> contextlib.AbstractContextManager:
        """DDP's own."""
        return self.module.no_sync()


def make(job: Job, **options) -> DdpEngine:
    """An engine for a job."""
    return DdpEngine(job, **(OPTIONS | options))


def prepare() -> None:
    """Imports no more than torch."""


def versions() -> dict[str, str]:
    """What findings depend on."""
    return {"torch": torch.__version__}


def capabilities(options: dict) -> dict:
    """DDP wants a parameter that has a gradient, and takes no new ones."""
    return capability.document("ddp", versions(), config=capability.CONFIG, blocks=["no_sync"])
