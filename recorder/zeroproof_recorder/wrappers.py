"""What wraps a model: DDP, FSDP, DeepSpeed, DTensor, or something that is not understood."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional

import torch
from torch import nn

from .compiler import without_wrapper
from .deepspeed_engine import is_engine
from .names import fsdp2_groups
from .session import Session

GroupName = Callable[[Any], Optional[str]]
Facts = dict[str, Any]

# Wrappers that reduce gradients by rules of their own: module prefix, class name, what it is.
FOREIGN = (
    ("megatron.core.distributed", "DistributedDataParallel", "Megatron's DDP"),
    ("megatron.core.distributed", "FullyShardedDataParallel", "Megatron's FSDP"),
    ("megatron.core.distributed", "TorchFullyShardedDataParallel", "Megatron's FSDP"),
    ("fairscale.", "ShardedDataParallel", "FairScale's sharded DDP"),
    ("fairscale.", "FullyShardedDataParallel", "FairScale's FSDP"),
    ("apex.", "DistributedDataParallel", "apex's DDP"),
    ("bagua.", "DistributedDataParallel", "bagua's DDP"),
    ("colossalai.", "GeminiDDP", "ColossalAI's Gemini"),
    ("colossalai.", "LowLevelZeroModel", "ColossalAI's ZeRO"),
    ("torch.nn.parallel.data_parallel", "DataParallel", "several devices of one process"),
    ("torch_xla.", "XlaFullyShardedDataParallel", "XLA's FSDP"),
    ("smdistributed.", "DistributedDataParallel", "SageMaker's DDP"),
    ("smdistributed.", "DistributedModel", "SageMaker's model parallelism"),
)
# Kinds of events that do not show how such a wrapper reduces gradients.
_LOST_WITH = {
    "fsdp1": ["param.post_acc", "bucket.*", "zparam.*"],
    "unknown": ["bucket.*", "zparam.*"],
    "dtensor": [],
}


class WrapperBook:
    """Writes what wraps each model, and writes it again when it has changed."""

    def __init__(self, session: Session, group_name: GroupName):
        self._session = session
        self._group_name = group_name
        self._found: dict[int, Optional[tuple[Callable, Any]]] = {}
        self._told: dict[int, Facts] = {}

    def attach(self, model: nn.Module, number: int) -> None:
        """Looks once what wraps a model, and says it."""
        self._found[number] = _found_in(model)
        self.tell(number, list(model.parameters()))

    def tell(self, number: int, params: Sequence[torch.Tensor]) -> None:
        """Writes the record of a model if it says anything new."""
        found = self._found.get(number)
        if found is None:
            return
        facts_of, wrapper = found
        facts = {**facts_of(wrapper, self._group_name), **_counts(params)}
        before = self._told.get(number)
        if facts == before:
            return
        self._told[number] = facts
        present = {key: value for key, value in facts.items() if value is not None}
        self._session.add({"rec": "wrapper", "model": number, **present})
        if before is None and not facts["understood"]:
            self._note(facts)

    def _note(self, facts: Facts) -> None:
        text = f"{facts['class']} is not understood: {facts['reason']}"
        lost = _LOST_WITH.get(facts["kind"], [])
        self._session.add({"rec": "note", "text": text, "observer": "wrapper", "lost": lost})


def wrapper_kind(model: nn.Module) -> str:
    """The word of the header for what runs a model: "plain" where it is not wrapped."""
    found = _found_in(model)
    return "plain" if found is None else _WORDS[found[0]]


def _found_in(model: nn.Module) -> Optional[tuple[Callable, Any]]:
    for find, facts_of in _KINDS:
        wrapper = find(model)
        if wrapper is not None:
            return facts_of, wrapper
    return None


def part_in(model: nn.Module) -> tuple[Optional[nn.Module], nn.Module]:
    """DDP in or around a model, None if there is none; and the model that names begin at.

    A model that torch.compile has wrapped has the names of the model that it was.
    """
    model = without_wrapper(model)
    ddp = _find_ddp(model)
    if ddp is not model:
        return ddp, model
    return ddp, part_in(model.module)[1]


# ---- what to look for ------------------------------------------------------------------------


def _find_engine(model: nn.Module):
    return model if is_engine(model) else None


def _find_ddp(model: nn.Module):
    return _first(model, nn.parallel.DistributedDataParallel)


def _find_fsdp1(model: nn.Module):
    module = sys.modules.get("torch.distributed.fsdp.fully_sharded_data_parallel")
    return _first(model, module.FullyShardedDataParallel) if module is not None else None


def _find_fsdp2(model: nn.Module):
    for module in model.modules():
        if fsdp2_groups(module):
            return module
    return None


def _find_dtensor(model: nn.Module):
    return next((p for p in model.parameters() if hasattr(p, "device_mesh")), None)


def _find_foreign(model: nn.Module):
    """Known ones anywhere in the model; else one around the whole model that hooks it."""
    for module in model.modules():
        if _foreign_word(module) is not None:
            return module
    return model if _hooks_its_only_child(model) else None


def _first(model: nn.Module, kind: type):
    return next((module for module in model.modules() if isinstance(module, kind)), None)


def _foreign_word(module: nn.Module) -> Optional[str]:
    for base in type(module).__mro__:
        for prefix, name, word in FOREIGN:
            if base.__name__ == name and f"{base.__module__}.".startswith(prefix):
                return word
    return None


def _hooks_its_only_child(model: nn.Module) -> bool:
    """A wrapper is what has one child, no parameter of its own, and hooks those of the child."""
    children = list(model.children())
    if len(children) != 1 or model._parameters or not _is_distributed():
        return False
    hooks = (hook for param in model.parameters() for hook in _gradient_hooks(param))
    return any(_is_of(hook, model) for hook in hooks)


def _gradient_hooks(param: torch.Tensor) -> Iterable[Any]:
    for table in ("_backward_hooks", "_post_accumulate_grad_hooks"):
        yield from (getattr(param, table, None) or {}).values()


def _is_of(hook: Any, module: nn.Module) -> bool:
    """Whether a hook is a method of the module, or a closure or partial over it."""
    hook = getattr(hook, "func", hook)
    cells = getattr(hook, "__closure__", None) or ()
    return getattr(hook, "__self__", None) is module or any(_holds(cell, module) for cell in cells)


def _holds(cell: Any, module: nn.Module) -> bool:
    try:
        return cell.cell_contents is module
    except ValueError:  # an empty cell
        return False


def _is_distributed() -> bool:
    dist = torch.distributed
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


# ---- what to say of it -----------------------------------------------------------------------


def _of_engine(engine: Any, group_name: GroupName) -> Facts:
    group = getattr(engine, "seq_data_parallel_group", None)
    group = group if group is not None else getattr(engine, "data_parallel_group", None)
    return {**_basic("deepspeed", engine), **_group(group, group_name)}


def _of_ddp(ddp: Any, group_name: GroupName) -> Facts:
    return {
        **_basic("ddp", ddp),
        **_group(ddp.process_group, group_name),
        "static_graph": bool(getattr(ddp, "static_graph", False)),
        "find_unused": bool(getattr(ddp, "find_unused_parameters", False)),
        "comm_hook": _comm_hook(ddp),
        "ignored": sorted(map(str, getattr(ddp, "parameters_to_ignore", ()))) or None,
    }


def _of_fsdp1(fsdp: Any, group_name: GroupName) -> Facts:
    reason = "FSDP1 keeps flat parameters and reduces them by hooks of its own"
    group = _group(getattr(fsdp, "process_group", None), group_name)
    return {**_basic("fsdp1", fsdp, reason), **group}


def _of_fsdp2(module: Any, group_name: GroupName) -> Facts:
    mesh = fsdp2_groups(module)[0].mesh_info
    facts = _basic("fsdp2", module)
    shard = getattr(mesh, "shard_process_group", None)
    replicate = getattr(mesh, "replicate_process_group", None)
    facts.update(_group(shard if shard is not None else replicate, group_name))
    if shard is not None and replicate is not None:
        facts["replicate_group"] = group_name(replicate)
        facts["replicate_size"] = replicate.size()
    return facts


def _of_dtensor(param: Any, _group_name: GroupName) -> Facts:
    mesh = param.device_mesh
    names = getattr(mesh, "mesh_dim_names", None) or range(mesh.ndim)
    axes = ", ".join(f"{name} {size}" for name, size in zip(names, mesh.shape))
    reason = f"its parameters are DTensors over a mesh ({axes}): which collectives complete their "
    reason += "gradients is not known"
    facts = _basic("dtensor", param, reason)
    return {**facts, "class": "DTensor", "size": mesh.size()}


def _of_foreign(module: nn.Module, _group_name: GroupName) -> Facts:
    word = _foreign_word(module)
    reason = word or "it hooks the gradients of the model that it wraps"
    return _basic("unknown", module, f"{reason}: its buckets and its schedule are not known")


def _basic(kind: str, wrapper: Any, reason: Optional[str] = None) -> Facts:
    understood = reason is None
    name = type(wrapper).__name__
    return {"kind": kind, "class": name, "understood": understood, "reason": reason}


def _group(group: Any, group_name: GroupName) -> Facts:
    if not _is_initialized():
        return {}
    if group is None:
        group = torch.distributed.group.WORLD
    return {"group": group_name(group), "size": group.size()}


def _is_initialized() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _comm_hook(ddp: Any) -> Optional[str]:
    """The last that was registered; of a built-in one only the log has a word."""
    hooks = getattr(ddp, "_comm_hooks", None)
    if hooks:
        hook = hooks[-1][0]
        return getattr(hook, "__qualname__", type(hook).__name__)
    logger = getattr(ddp, "logger", None)
    if logger is None:
        return None
    return logger._get_ddp_logging_data().strs_map.get("comm_hook") or None


def _counts(params: Sequence[torch.Tensor]) -> Facts:
    trainable = sum(param.requires_grad for param in params)
    return {"trainable": trainable, "frozen": len(params) - trainable}


# The first that is found describes the model: what stands outside is what reduces.
_KINDS: tuple[tuple[Callable, Callable], ...] = (
    (_find_engine, _of_engine),
    (_find_ddp, _of_ddp),
    (_find_fsdp1, _of_fsdp1),
    (_find_fsdp2, _of_fsdp2),
    (_find_foreign, _of_foreign),
    (_find_dtensor, _of_dtensor),
)
_WORDS = {
    _of_engine: "deepspeed",
    _of_ddp: "ddp",
    _of_fsdp1: "fsdp1",
    _of_fsdp2: "fsdp2",
    _of_foreign: "unknown",
    _of_dtensor: "dtensor",
}
