"""The engines that programs run on, by name."""

from __future__ import annotations

import importlib
from typing import Any

# Each module has make(job, **options), prepare(), OPTIONS, versions() and capabilities(options).
MODULES = {
    "plain": "zeroproof_subject.engines.plain",
    "ddp": "zeroproof_subject.engines.ddp",
    "fsdp2": "zeroproof_subject.engines.fsdp2",
    "deepspeed": "zeroproof_subject.engines.deepspeed",
    "megatron": "zeroproof_subject.engines.megatron",
}


def load(name: str) -> Any:
    """A module of the table, or `package.module:make` of a user."""
    if name in MODULES:
        return importlib.import_module(MODULES[name])
    from zeroproof_subject.engines.own import OwnEngine

    return OwnEngine(name)
