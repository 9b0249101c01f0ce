"""Trees of modules as torch modules.

Each module adds a number to the activations, so that the gradient of each weight is a product of
data alone: it does not depend on the weights, and is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from zeroproof_subject.contributions import Contributions, first_weights
from zeroproof_subject.program import Model, Part

ACTIVATIONS = 2  # elements
EXPERT_ELEMENTS = 3


class Node(nn.Module):
    """A module of the tree: adds what it computes to the activations."""

    def forward(self, activations: Tensor, data: Contributions, site: str) -> Tensor:
        """`site` is the name of the module in whose place this one is called."""
        raise NotImplementedError


class LinearNode(Node):
    """torch.nn.Linear."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        self.linear = nn.Linear(part["inputs"], part["outputs"], bias=part["has_bias"])
        self.shape = (1,) * (part["dimensions"] - 1) + (part["inputs"],)
        self.outputs = part["outputs"]
        self.input_needs_grad = part["input_needs_grad"]
        if part["trained"] in ("bias_only", "frozen"):
            self.linear.weight.requires_grad_(False)
        if part["trained"] == "frozen" and part["has_bias"]:
            self.linear.bias.requires_grad_(False)
        self.is_grouped = part["trained"] != "ungrouped"

    def forward(self, activations: Tensor, data: Contributions, site: str) -> Tensor:  # noqa: D102
        of = {"dtype": self.linear.weight.dtype, "device": activations.device}
        factor = torch.tensor(data.numbers(site + ".in", prod(self.shape)), **of)
        factor = factor.reshape(self.shape)
        if self.input_needs_grad:
            factor = factor + 0 * activations.sum().to(factor.dtype)
        output = self.linear(factor)
        weights = torch.tensor(data.numbers(site + ".out", self.outputs), **of)
        return activations + (output * weights).sum()


class CustomNode(Node):
    """Weights of a module of the user's own."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        self.is_grouped = part["trained"] != "ungrouped"
        for at in range(part["weights"]):
            weight = nn.Parameter(torch.zeros(tuple(part["shape"])))
            weight.requires_grad_(part["trained"] != "frozen")
            self.register_parameter("weight" if at == 0 else "weight_1", weight)

    def forward(self, activations: Tensor, data: Contributions, site: str) -> Tensor:  # noqa: D102
        for name, weight in self.named_parameters(recurse=False):
            activations = activations + weighted(weight, data, f"{site}.{name}")
        return activations


class TiedNode(Node):
    """A module with the weight of an earlier module."""

    def __init__(self, weight: nn.Parameter) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, activations: Tensor, data: Contributions, site: str) -> Tensor:  # noqa: D102
        return activations + weighted(self.weight, data, site)


class Sequence(Node):
    """Modules in their order, and the weights that it uses itself."""

    def __init__(self, parts: tuple[Part, ...], build: Build) -> None:
        super().__init__()
        self.parts = parts
        for part in parts:
            if part.kind == "own_weight":
                self.register_parameter(part.name, nn.Parameter(torch.zeros(part["elements"])))
            elif part.kind not in ("shared", "external_use"):
                self.add_module(part.name, build.make(part))
        self._lookup = build.nodes  # a dict, so that they are no children

    def forward(self, activations: Tensor, data: Contributions, site: str) -> Tensor:  # noqa: D102
        for part in self.parts:
            if part.name not in data.skips:
                activations = self.run(part, activations, data)
                if data.watch is not None:
                    data.watch(part.name, activations)
        return activations

    def run(self, part: Part, activations: Tensor, data: Contributions) -> Tensor:
        """One module of the list."""
        if part.kind == "own_weight":
            return activations + weighted(getattr(self, part.name), data, part.name)
        if part.kind == "shared":
            return self._lookup[part["module"]](activations, data, part.name)
        if part.kind == "external_use":
            weight = weight_of(self._lookup[part["module"]])
            return activations + weighted(weight, data, part.name)
        return getattr(self, part.name)(activations, data, part.name)


class CheckpointNode(Node):
    """torch.utils.checkpoint around the body."""

    def __init__(self, part: Part, build: Build) -> None:
        super().__init__()
        self.body = Sequence(part.body, build)
        self.is_reentrant = part["is_reentrant"]

    def forward(self, activations: Tensor, data: Contributions, site: str) -> Tensor:  # noqa: D102
        return checkpoint(self.body, activations, data, site, use_reentrant=self.is_reentrant)


class UnusedNode(Node):
    """Registered, and never called."""

    def __init__(self, part: Part, build: Build) -> None:
        super().__init__()
        self.body = Sequence(part.body, build)

    def forward(self, activations: Tensor, data: Contributions, site: str) -> Tensor:  # noqa: D102
        return activations


class TileBackward(torch.autograd.Function):
    """Runs a part of a model and its backward at once; the rest of the backward passes it by."""

    @staticmethod
    def forward(context, activations: Tensor, run, factor: float) -> Tensor:  # noqa: D102
        with torch.enable_grad():
            output = run(activations.detach().requires_grad_())
            (output.mean() * factor).backward()
        return output.detach()

    @staticmethod
    def backward(context, gradient: Tensor):  # noqa: D102
        return gradient, None, None


class TiledNode(Node):
    """The body with its backward inside forward, as of a tiled loss."""

    def __init__(self, part: Part, build: Build) -> None:
        super().__init__()
        self.body = Sequence(part.body, build)
        self.factor = 1.0  # of the gradients: what an engine divides them by, plain PyTorch does here

    def forward(self, activations: Tensor, data: Contributions, site: str) -> Tensor:  # noqa: D102
        if not torch.is_grad_enabled():
            return self.body(activations, data, site)
        return TileBackward.apply(activations, lambda it: self.body(it, data, site), self.factor)


class ExpertsNode(Node):
    """A leaf module of stage 3: each forward runs one of its weights."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        self.count = part["experts"]
        for at in range(self.count):
            self.register_parameter(f"e{at}", nn.Parameter(torch.zeros(EXPERT_ELEMENTS)))

    def forward(self, activations: Tensor, data: Contributions, site: str) -> Tensor:  # noqa: D102
        name = f"e{data.expert % self.count}"
        return activations + weighted(getattr(self, name), data, f"{site}.{name}")


class Build:
    """Makes the modules of one tree, which may refer to earlier ones."""

    def __init__(self) -> None:
        self.nodes: dict[str, nn.Module] = {}

    def make(self, part: Part) -> nn.Module:
        """The module of a part, and of all below it."""
        node = self._make(part)
        self.nodes[part.name] = node
        return node

    def _make(self, part: Part) -> nn.Module:
        match part.kind:
            case "linear":
                return LinearNode(part)
            case "custom":
                return CustomNode(part)
            case "tied":
                return TiedNode(weight_of(self.nodes[part["module"]]))
            case "sequential":
                return Sequence(part.body, self)
            case "checkpoint":
                return CheckpointNode(part, self)
            case "unused":
                return UnusedNode(part, self)
            case "tiled":
                return TiledNode(part, self)
            case "experts":
                return ExpertsNode(part)
        raise NotImplementedError(f"module {part.kind}")


@dataclass
class Outputs:
    """What a forward with a dataclass returns."""

    constant: Tensor | None
    losses: list[Tensor]
    activations: Tensor | None


class Root(nn.Module):
    """A model: what an engine trains. Calls to it give Outputs, a dict or a tuple."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        build = Build()
        self.body = Sequence(model.body, build)
        self.heads = nn.ModuleList(Sequence(head, build) for head in model.heads)
        self._lookup = build.nodes
        self._set_first_weights()

    def _set_first_weights(self) -> None:
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                values = first_weights(name, parameter.numel())
                parameter.copy_(torch.tensor(values).reshape(parameter.shape))

    def node(self, name: str) -> nn.Module:
        """The module of a name of the tree."""
        return self._lookup[name]

    def ungrouped(self) -> set[int]:
        """The ids of the parameters that no group of the optimizer lists."""
        return {
            id(parameter)
            for node in self._lookup.values()
            if not getattr(node, "is_grouped", True)
            for parameter in node.parameters(recurse=True)
        }

    def forward(self, activations: Tensor, data: Contributions):  # noqa: D102
        hidden = self.body(activations, data, "body")
        heads = [head(hidden, data, "head") for head in self.heads] or [hidden]
        losses = [head.mean() + self.model.added_to_loss for head in heads]
        return self._in_container(losses, hidden)

    def _in_container(self, losses: list[Tensor], hidden: Tensor):
        constant = torch.ones(1, device=hidden.device) if self.model.has_constant_output else None
        activations = hidden if self.model.returns_activations else None
        if self.model.container == "dataclass":
            return Outputs(constant, losses, activations)
        if self.model.container == "dict":
            named = {"constant": constant, "activations": activations}
            named |= {f"loss{at}": loss for at, loss in enumerate(losses)}
            return {name: value for name, value in named.items() if value is not None}
        outputs = (constant, *losses, activations)
        outputs = tuple(value for value in outputs if value is not None)
        return outputs if len(outputs) > 1 else outputs[0]


def losses_of(model: Model, outputs) -> dict[str, Tensor]:
    """Losses and activations of a forward, by the end of their name: "", ".1", ".h"."""
    if isinstance(outputs, Outputs):
        values = [*outputs.losses, outputs.activations]
    elif isinstance(outputs, dict):
        values = [outputs[f"loss{at}"] for at in range(max(1, len(model.heads)))]
        values.append(outputs.get("activations"))
    else:
        values = list(outputs) if isinstance(outputs, tuple) else [outputs]
        values = values[1:] if model.has_constant_output else values
        values += [] if model.returns_activations else [None]
    names = ["" if at == 0 else f".{at}" for at in range(len(values) - 1)]
    named = dict(zip(names, values[:-1], strict=True))
    return named | ({".h": values[-1]} if values[-1] is not None else {})


def weight_of(node: nn.Module) -> nn.Parameter:
    """The weight that others use."""
    return node.linear.weight if isinstance(node, LinearNode) else node.weight


def weighted(weight: Tensor, data: Contributions, site: str) -> Tensor:
    """A sum of the elements, each times a number of its own."""
    count = weight.numel()
    of = {"dtype": weight.dtype, "device": weight.device}
    return (weight * torch.tensor(data.numbers(site, count), **of).reshape(weight.shape)).sum()

