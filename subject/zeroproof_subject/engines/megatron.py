"""Megatron-core's DistributedDataParallel, with the distributed optimizer or without it."""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from zeroproof_subject import capability, device
from zeroproof_subject.engine import Job
from zeroproof_subject.engines import cuda_stand_ins
from zeroproof_subject.engines.megatron_config import (
    ddp_members,
    dtype_of,
    make_optimizer,
    state_keys,
    transformer_config,
)

# Of DistributedDataParallelConfig; bucket_size 0: two parameters a bucket.
OPTIONS = {
    "use_distributed_optimizer": True,
    "overlap_grad_reduce": False,
    "overlap_param_gather": False,
    "align_param_gather": False,
    "average_in_collective": False,
    "reduce_scatter_with_fp32_accumulation": False,
    "check_for_nan_in_grad": False,
    "bucket_size": 0,
}
MISSING_IS_ZERO = True  # the buffer has a zero for a parameter without a gradient
CASES_OF_A_GROUP = 200
NUMBERS = itertools.count()  # of engines


@dataclass(frozen=True)
class Saved:
    """A checkpoint: where its files begin, and what no file says."""

    path: str
    micro_batches: int
    has_state: bool


class MegatronEngine:
    """A training loop as megatron.training has it, around a model that is whole on every rank.

    zero_grad_buffer() begins a window, all but its last micro-batch run in no_sync(), and
    finish_grad_sync() ends it before the optimizer's step.
    """

    def __init__(self, job: Job, options: dict[str, Any]) -> None:
        from megatron.core.distributed import (
            DistributedDataParallel,
            DistributedDataParallelConfig,
        )

        self.job = job
        self.settings = job.settings
        self.options = options
        job.model.to(dtype_of(job.config))
        config = DistributedDataParallelConfig(**ddp_members(options, job.config))
        self.module = DistributedDataParallel(transformer_config(), config, job.model)
        self.module.broadcast_params()
        self.optimizer = make_optimizer(self.module, job, options)
        self.micro_batches = 0
        self.is_reduced = False  # finish_grad_sync() was called in this window
        self.has_state = False  # of the optimizer
        self.user_blocks = 0  # no_sync() of the user, open now
        self.unsynced = contextlib.ExitStack()  # Megatron's no_sync(), while it is open
        self.saved: dict[str, Saved] = {}
        self.folder = os.path.join(os.environ["ZEROPROOF_FOLDER"], f"engine{next(NUMBERS)}")
        self.set_sync()

    def __call__(self, *arguments: Any) -> Any:
        return self.module(*arguments)

    # --- backward ---

    def backward(self, loss: Tensor, scale_wrt_gas: bool = True, **options: bool) -> None:
        """backward_step of the schedules: divided by the micro-batches, times the loss scale."""
        steps = self.settings.accumulation_steps if scale_wrt_gas else 1
        self.scale(loss / steps).backward(**options)

    def scale(self, loss: Tensor) -> Tensor:
        """optimizer.scale_loss."""
        return self.optimizer.scale_loss(loss)

    def tensor_backward(self, loss: Tensor, **options: bool) -> None:
        """The user's own division, if any."""
        loss.backward(**options)

    def set_sync(self) -> None:
        """Opens or closes Megatron's no_sync()."""
        self.unsynced.close()
        if self.user_blocks or not self.will_step():
            self.unsynced.enter_context(self.module.no_sync())

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Megatron's own, which is no more than a flag: a schedule has it open already."""
        self.user_blocks += 1
        self.set_sync()
        try:
            yield
        finally:
            self.user_blocks -= 1
            self.set_sync()

    # --- windows ---

    def will_step(self) -> bool:
        """A window ends."""
        return (self.micro_batches + 1) % self.settings.accumulation_steps == 0

    def step(self) -> None:
        """finish_grad_sync() and the optimizer's step, where a window ends."""
        if self.will_step():
            self.reduce()
            self.optimizer.step()
            self.has_state = True
            self.drop_gradients()
        self.micro_batches += 1
        self.set_sync()

    def reduce(self) -> None:
        """What finalize_model_grads does without other parallelism, once a window."""
        if not self.is_reduced:
            self.module.finish_grad_sync()
            self.is_reduced = True

    def zero_grad(self) -> None:
        """As a training iteration begins."""
        self.drop_gradients()
        self.set_sync()

    def drop_gradients(self) -> None:
        """The buffers' and the optimizer's."""
        self.module.zero_grad_buffer()
        self.optimizer.zero_grad()
        self.is_reduced = False

    # --- whole values ---

    def buffers(self) -> list[Any]:
        """Of parameters and gradients."""
        return [*self.module.buffers, *self.module.expert_parallel_buffers]

    def gradients(self) -> dict[str, Tensor | None]:
        """main_grad, divided by the loss scale; with the distributed optimizer by its shards."""
        self.reduce()
        scale = float(self.optimizer.get_loss_scale())
        whole = self.of_buffers("grad_data") if self.options["use_distributed_optimizer"] else None
        return {
            name: self.value_of(it, it.main_grad, whole).float() / scale
            for name, it in self.trained().items()
        }

    def parameters(self) -> dict[str, Tensor]:
        """As forward has them; by their shards where a gather waits for the next forward."""
        whole = self.of_buffers("param_data") if self.options["overlap_param_gather"] else None
        return {
            name: self.value_of(it, it.data, whole) for name, it in self.job.model.named_parameters()
        }

    def trained(self) -> dict[str, torch.nn.Parameter]:
        """Those that have a place in a buffer."""
        named = self.job.model.named_parameters()
        return {name: it for name, it in named if hasattr(it, "main_grad")}

    def of_buffers(self, data: str) -> dict[int, Tensor]:
        """Copies of all parameters' parts, from the shards of all ranks, by the parameter's id."""
        group = self.module.intra_dp_cp_group
        found: dict[int, Tensor] = {}
        for buffer in self.buffers():
            buckets = [whole_of(getattr(it, data), group) for it in buffer.buckets]
            flat = torch.cat(buckets)
            for parameter, (start, end, _) in buffer.param_index_map.items():
                found[id(parameter)] = flat[start:end].view(parameter.shape)
        return found

    def value_of(
        self, parameter: torch.nn.Parameter, own: Tensor, whole: dict[int, Tensor] | None
    ) -> Tensor:
        """A copy."""
        there = (whole or {}).get(id(parameter), own)
        return there.detach().clone()

    def optimizer_state(self) -> dict[str, dict[str, Tensor]]:
        """Of each trained parameter, whole."""
        keys = state_keys(self.settings) if self.has_state else ()
        states: dict[str, dict[str, Tensor]] = {}
        for name, parameter in self.trained().items():
            found = {key: self.state_of(parameter, key) for key in keys}
            states[name] = {key: it for key, it in found.items() if it is not None}
        return states

    def state_of(self, parameter: torch.nn.Parameter, key: str) -> Tensor | None:
        """From the shards of all ranks."""
        inner = self.optimizer.chained_optimizers[0]
        if not self.options["use_distributed_optimizer"]:
            main = getattr(parameter, "main_param", parameter)
            value = inner.optimizer.state[main].get(key)
            return None if value is None else value.detach().clone()
        flat = torch.zeros(parameter.numel(), dtype=torch.float32)
        if parameter in inner.model_param_gbuf_map:
            group, order = inner.model_param_group_index_map[parameter]
            shard = inner.optimizer.param_groups[group]["params"][order]
            part = inner._get_model_param_range_map(parameter)["param"]
            flat[part.start : part.end] = inner.optimizer.state[shard].get(key, 0)
        dist.all_reduce(flat)
        return flat.view(parameter.shape)

    # --- checkpoints ---

    def save(self, tag: str) -> None:
        """The model and the optimizer as megatron.training saves them in its torch format."""
        self.finish_gathers()
        saved = self.saved[tag] = Saved(
            f"{self.folder}.{len(self.saved)}", self.micro_batches, self.has_state
        )
        model, optimizer = self.module.state_dict(), self.optimizer.state_dict()
        if self.options["use_distributed_optimizer"]:
            self.optimizer.save_parameter_state(f"{saved.path}.state")
        states = {"model": model, "optimizer": optimizer}
        torch.save(states, f"{saved.path}.rank{self.job.rank}")

    def load(self, tag: str) -> None:
        """The reverse, in the same order."""
        self.finish_gathers()
        saved = self.saved[tag]
        states = torch.load(f"{saved.path}.rank{self.job.rank}", weights_only=False)
        self.module.load_state_dict(states["model"])
        self.optimizer.load_state_dict(states["optimizer"])
        if self.options["use_distributed_optimizer"]:
            self.optimizer.load_parameter_state(f"{saved.path}.state")
        self.micro_batches, self.has_state = saved.micro_batches, saved.has_state
        self.set_sync()

    def finish_gathers(self) -> None:
        """force_param_sync of megatron.training, before anything reads or writes parameters."""
        if self.options["overlap_param_gather"]:
            self.module.start_param_sync(force_sync=True)

    def set_learning_rate(self, group: int | None, learning_rate: float) -> None:
        """As OptimizerParamScheduler does."""
        for at, options in enumerate(self.optimizer.param_groups):
            if group in (None, at):
                options["lr"] = learning_rate

    def close(self) -> None:
        """Leaves no context open."""
        self.unsynced.close()


def whole_of(data: Tensor, group: Any) -> Tensor:
    """A copy of a bucket, each part from the rank that owns it."""
    ranks = dist.get_world_size(group)
    shard = data.chunk(ranks)[dist.get_rank(group)].detach().clone()
    parts = [torch.empty_like(shard) for _ in range(ranks)]
    dist.all_gather(parts, shard, group=group)
    return torch.cat(parts)


def make(job: Job, **options: Any) -> MegatronEngine:
    """An engine for a job. The process groups are made with a process's first engine."""
    from megatron.core import parallel_state

    if device.here() == "cpu":
        cuda_stand_ins.apply()
    if not parallel_state.is_initialized():
        parallel_state.initialize_model_parallel()
    return MegatronEngine(job, OPTIONS | options)


def prepare() -> None:
    """Imports what every rank needs. It says at length that Transformer Engine is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import megatron.core.distributed
        import megatron.core.optimizer  # noqa: F401


def versions() -> dict[str, str]:
    """What findings depend on."""
    import megatron.core

    return {"torch": torch.__version__, "megatron-core": megatron.core.__version__}


CONFIG: dict[str, Any] = {
    **{key: rule for key, rule in capability.CONFIG.items() if key != "/optimizer/params"},
    **{f"/optimizer/params/{key}": True for key in ("lr", "betas", "eps", "adam_w_mode")},
    "/optimizer/params/weight_decay": True,
    "/bf16/enabled": True,
    "/fp16/enabled": True,
    "/fp16/loss_scale": True,
    "/fp16/initial_scale_power": True,
}


EXCEPTIONS: dict[str, Any] = {
    "catch": {},
    "raise": {},
    "hook": {"at": ["forward", "gradient", "loss"], "module": True, "body": ["raise"]},
}


def capabilities(options: dict) -> dict:
    """Of the options: what a configuration of Megatron-core takes."""
    chosen = OPTIONS | options
    config = dict(CONFIG)
    document = capability.document("megatron", versions(), config=config, blocks=["no_sync"])
    statements = document["statements"]
    statements |= {**EXCEPTIONS, "call_module": {}, "transform": {}}
    statements["forward"]["expert"] = True
    document["modules"]["experts"] = {}
    if chosen["use_distributed_optimizer"]:
        config["/optimizer/type"] = ["Adam", "AdamW"]  # "Only Adam … currently supported"
    else:
        # The other one's state_dict() asserts that each rank has stepped a parameter of its own.
        statements |= {"save": {}, "load": {}}
    if chosen["overlap_grad_reduce"]:
        need_all_gradients(document)
    return document


def need_all_gradients(document: dict) -> None:
    """finish_grad_sync() asserts that each parameter of a bucket has had its gradient."""
    del document["model"]["heads"]
    for kind in ("skip", "call_module"):
        del document["statements"][kind]
    for member in ("skips", "expert"):
        del document["statements"]["forward"][member]
    for kind in ("unused", "experts"):
        del document["modules"][kind]
