"""A program's configuration under the names of Megatron-core, and the optimizer that it makes."""

from __future__ import annotations

from typing import Any

import torch

from zeroproof_subject.engine import Job
from zeroproof_subject.settings import Settings, optimizer_kind

ALIGNMENT = 64  # elements: where the distributed optimizer lets a parameter begin


def dtype_of(config: dict[str, Any]) -> torch.dtype:
    """Of parameters."""
    for name, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
        if config.get(name, {}).get("enabled", False):
            return dtype
    return torch.float32


def transformer_config() -> Any:
    """Has to be there; of its members DistributedDataParallel asks for calculate_per_token_loss."""
    from megatron.core.transformer.transformer_config import TransformerConfig

    return TransformerConfig(num_layers=1, hidden_size=2, num_attention_heads=1)


def ddp_members(options: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Of DistributedDataParallelConfig: the engine's options."""
    default = ALIGNMENT + 1 if options["use_distributed_optimizer"] else 4
    return {
        **options,
        "bucket_size": options["bucket_size"] or default,
        # As megatron.training has it for bf16; sums of 16 bits would be rounded.
        "grad_reduce_in_fp32": dtype_of(config) is not torch.float32,
    }


def optimizer_members(
    settings: Settings, options: dict[str, Any], config: dict[str, Any]
) -> dict[str, Any]:
    """Of OptimizerConfig: the program's optimizer."""
    name, arguments = optimizer_kind(settings)
    dtype = dtype_of(config)
    scaler = config.get("fp16", {}) if dtype is torch.float16 else {}
    members: dict[str, Any] = {
        "optimizer": "sgd" if name == "SGD" else "adam",
        "lr": arguments["lr"],
        "min_lr": 0.0,
        "weight_decay": arguments["weight_decay"],
        "clip_grad": settings.clipping,
        "decoupled_weight_decay": name == "AdamW",
        "bf16": dtype is torch.bfloat16,
        "fp16": dtype is torch.float16,
        "params_dtype": dtype,
        "loss_scale": scaler.get("loss_scale", 0) or None,
        "initial_loss_scale": 2.0 ** scaler.get("initial_scale_power", 16),
        "use_distributed_optimizer": options["use_distributed_optimizer"],
        "overlap_param_gather": options["overlap_param_gather"],
    }
    if name == "SGD":
        return members | {"sgd_momentum": arguments["momentum"]}
    beta1, beta2 = arguments["betas"]
    return members | {"adam_beta1": beta1, "adam_beta2": beta2, "adam_eps": arguments["eps"]}


def make_optimizer(module: Any, job: Job, options: dict[str, Any]) -> Any:
    """get_megatron_optimizer, with a group for each of the job's."""
    from megatron.core.optimizer import (
        OptimizerConfig,
        ParamKey,
        ParamPredicate,
        get_megatron_optimizer,
    )

    config = OptimizerConfig(**optimizer_members(job.settings, options, job.config))
    overrides = {}
    for at, group in enumerate(job.groups[1:], start=1):
        members = frozenset(map(id, group))
        is_of_group = ParamPredicate(f"group{at}", lambda it, members=members: id(it) in members)
        # Another rate for a scheduler, which the program does not have: it makes a group.
        overrides[ParamKey(predicate=is_of_group)] = {"max_lr": config.lr * (1 + at)}
    return get_megatron_optimizer(config, [module], config_overrides=overrides)


def state_keys(settings: Settings) -> tuple[str, ...]:
    """What the optimizer keeps of each parameter."""
    if settings.optimizer != "SGD":
        return ("exp_avg", "exp_avg_sq")
    return ("momentum_buffer",) if (settings.params or {}).get("momentum") else ()
