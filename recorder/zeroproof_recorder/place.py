"""Which rank of how many this process is, and what its file is called."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

# Launchers and the two variables in which each of them sets rank and world size.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),  # torchrun, deepspeed, accelerate
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # mpirun
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI
    ("SLURM_PROCID", "SLURM_NTASKS"),  # srun
)


@dataclass(frozen=True)
class Place:
    """A process among those of a job."""

    rank: int = 0
    world: int = 1
    restart: int = 0  # how often torchrun has started the job again

    @classmethod
    def of_environment(cls, env: Mapping[str, str]) -> Place:
        """What the launcher's variables say; without any, rank 0 of 1."""
        restart = _number(env.get("TORCHELASTIC_RESTART_COUNT")) or 0
        for rank_name, world_name in LAUNCHERS:
            rank, world = _number(env.get(rank_name)), _number(env.get(world_name))
            if rank is not None and world is not None and 0 <= rank < world:
                return cls(rank, world, restart)
        return cls(restart=restart)

    @classmethod
    def of_process(cls) -> Place:
        """What torch.distributed says if it is initialised, else what the environment says."""
        place = cls.of_environment(os.environ)
        dist = sys.modules.get("torch.distributed")
        if dist is not None and dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size(), place.restart)
        return place


def _number(text: Optional[str]) -> Optional[int]:
    return int(text) if text is not None and text.strip().isdigit() else None


def program_name(script: str) -> str:
    """A script or module name as the word that begins file names."""
    word = re.sub(r"[^A-Za-z0-9.-]+", "_", Path(script).name.removesuffix(".py")).strip("._-")
    return re.sub(r"_{2,}", "_", word) or "job"


def trace_name(program: str, place: Place, stage: Optional[int], dtype: Optional[str]) -> str:
    """The file name of a rank: hooktrace's form, which readers group by.

    ``<program>__w<world>_r<rank>.jsonl.gz``, with ``z<stage>_<dtype>_`` before it for DeepSpeed.
    """
    again = f".restart{place.restart}" if place.restart else ""
    engine = f"z{stage}_{dtype or 'fp32'}_" if stage is not None else ""
    return f"{program}{again}__{engine}w{place.world}_r{place.rank}.jsonl.gz"
