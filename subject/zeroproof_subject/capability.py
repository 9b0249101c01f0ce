"""Documents of the schema zeroproof.capabilities/1: what programs are drawn for an engine."""

from __future__ import annotations

from typing import Any

from zeroproof_subject import device

SCHEMA = "zeroproof.capabilities/1"

# What every engine of this package does with a configuration.
CONFIG: dict[str, Any] = {
    "/gradient_accumulation_steps": True,
    "/gradient_clipping": True,
    "/train_micro_batch_size_per_gpu": True,
    "/optimizer/type": True,
    "/optimizer/params": True,
}

# Of custom weights that have a dimension.
SHAPES = [[2], [3], [1], [2, 2], [1, 3], [2, 1, 2], [5]]

MODULES: dict[str, dict[str, Any]] = {
    "linear": {
        "outputs": [1, 2, 3, 4, 6],
        "has_bias": True,
        "trained": ["all", "bias_only", "frozen"],
        "input_needs_grad": True,
        "dimensions": True,
    },
    "custom": {"weights": True, "trained": ["all", "frozen"]},
    "own_weight": {},
    "sequential": {},
    "shared": {},
    "tied": {},
    "checkpoint": {"is_reentrant": True},
    "external_use": {"when": ["used_here"]},
    "unused": {},
}

STATEMENTS: dict[str, dict[str, Any]] = {
    "forward": {"mode": True, "inputs_need_grad": True, "skips": True},
    "skip": {},
    "sum": {},
    "scale": {},
    "backward": {
        "engine": "set",
        "retain_graph": True,
        "scale_wrt_gas": True,
        "keeps_dimension": True,
    },
    "step": {},
    "zero_grad": {},
    "set_learning_rate": {"group": True},
    "drop": {},
    "inspect": {"what": ["weights", "optimizer_state"]},
    "foreign_backward": {},
}


def document(
    subject: str,
    versions: dict[str, str],
    config: dict[str, Any],
    blocks: list[str],
    ranks_differ: bool = True,
) -> dict[str, Any]:
    """What all engines can do, with what differs between them."""
    statements = dict(STATEMENTS)
    if blocks:
        statements["block"] = {"kind": blocks, "engine": True}
    return {
        "schema": SCHEMA,
        "subject": subject,
        "version": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "engines": 2,
        "world": {"ranks": device.worlds([1, 2]), **({"ranks_differ": True} if ranks_differ else {})},
        "data": {"seed": True, "mode": ["exact", "identity"]},
        "model": {
            "heads": True,
            "container": True,
            "has_constant_output": True,
            "returns_activations": True,
            "added_to_loss": True,
        },
        "engine": {"parameter_groups": True},
        "modules": {name: dict(rules) for name, rules in MODULES.items()},
        "statements": {name: dict(rules) for name, rules in statements.items()},
        "config": config,
    }
