"""The model of a script: a class for each body of modules, as models.py builds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from zeroproof_subject.contributions import first_weights
from zeroproof_subject.program import Model, Part

WEIGHTS = '''
class Weights(nn.Module):
    def __init__(self, *weights):
        super().__init__()
        for at, weight in enumerate(weights):
            self.register_parameter("weight_1" if at else "weight", weight)

    def forward(self, x, data):
        for key, weight in self.named_parameters(recurse=False):
            x = x + (weight * numbers(f"{data}.{key}", *weight.shape)).sum()
        return x
'''
TIED = '''
class Tied(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x, data):
        return x + (self.weight * numbers(data, *self.weight.shape)).sum()
'''
REFERRING = ("shared", "tied", "external_use")


class NoScript(ValueError):
    """The program has something that scripts do not have."""


@dataclass
class Names:
    """Of one parameter: in this package's model, in the script's, and its elements."""

    ours: str
    scripts: str
    count: int


@dataclass
class ModelScript:
    """Writes the classes of one model. `skipped`: modules that some forward leaves out."""

    model: Model
    class_name: str
    skipped: frozenset[str]
    parameters: list[Names] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.referred = {p["module"] for p in self.model.parts() if p.kind in REFERRING}
        self.kinds = {part.name: part.kind for part in self.model.parts()}
        model = self.model
        heads = [f"Head{at}" for at in range(len(model.heads))]
        for at, head in enumerate(model.heads):
            self.add_class(f"Head{at}", head, f"heads.{at}", f"head{at}", [], ["return x"])
        made = [f"self.{name.lower()} = {name}()" for name in heads]
        self.add_class(self.class_name, model.body, "body", "", made, list(self.result()))

    def result(self) -> Iterator[str]:
        """What the root's forward returns."""
        model = self.model
        losses = [f"self.head{at}(x, data)" for at in range(len(model.heads))] or ["x"]
        added = f" + {model.added_to_loss}" if model.added_to_loss else ""
        values = ["torch.ones(1)"] if model.has_constant_output else []
        values += [f"{loss}.mean(){added}" for loss in losses]
        values += ["x"] if model.returns_activations else []
        if model.container != "tensors":
            raise NoScript(f"no script for outputs in a {model.container}")
        yield f"return {', '.join(values)}"

    def add_class(
        self, name: str, parts: tuple[Part, ...], ours: str, path: str, made: list[str], end: list[str]
    ) -> None:
        """A class whose children are the parts."""
        lines, calls = [], []
        for part in parts:
            place = f"{path}.{part.name}" if path else part.name
            lines += self.makes(part, f"{ours}.{part.name}", place)
            call = self.call_of(part)
            if call and part.name in self.skipped:
                calls += [f'if "{part.name}" not in skipped:', "    " + call]
            elif call:
                calls.append(call)
        text = [f"class {name}(nn.Module):", "    def __init__(self):", "        super().__init__()"]
        text += ["        " + line for line in [*lines, *made]]
        text += ["", "    def forward(self, x, data):"]
        text += ["        " + line for line in [*calls, *end]]
        self.classes.append("\n".join(text))

    def makes(self, part: Part, ours: str, place: str) -> Iterator[str]:
        """The lines that make a module."""
        if part["trained"] == "ungrouped":
            raise NoScript("no script for parameters outside of the optimizer")
        target = f"self.{part.name} = "
        if part.name in self.referred:
            target = f'made["{part.name}"] = {target}'
        match part.kind:
            case "linear":
                bias = "" if part["has_bias"] else ", bias=False"
                yield f"{target}nn.Linear({part['inputs']}, {part['outputs']}{bias})"
                self.name(ours + ".linear.weight", place + ".weight", part["inputs"] * part["outputs"])
                if part["has_bias"]:
                    self.name(ours + ".linear.bias", place + ".bias", part["outputs"])
                if part["trained"] in ("bias_only", "frozen"):
                    yield f"self.{part.name}.weight.requires_grad_(False)"
                if part["trained"] == "frozen" and part["has_bias"]:
                    yield f"self.{part.name}.bias.requires_grad_(False)"
            case "custom":
                weight = f"nn.Parameter(torch.zeros({tuple(part['shape'])}))"
                yield f"{target}Weights({', '.join([weight] * part['weights'])})"
                count = 1
                for size in part["shape"]:
                    count *= size
                for key in ("weight", "weight_1")[: part["weights"]]:
                    self.name(f"{ours}.{key}", f"{place}.{key}", count)
                if part["trained"] == "frozen":
                    yield f"self.{part.name}.requires_grad_(False)"
            case "own_weight":
                yield f"{target}nn.Parameter(torch.zeros({part['elements']}))"
                self.name(ours, place, part["elements"])
            case "sequential" | "checkpoint" | "unused":
                name = f"{self.class_name}{part.name.capitalize()}"
                below = ours if part.kind == "sequential" else ours + ".body"
                self.add_class(name, part.body, below, place, [], ["return x"])
                yield f"{target}{name}()"
            case "tied":
                yield f"{target}Tied({self.weight_of(part['module'])})"
            case "shared" | "external_use":
                pass
            case _:
                raise NoScript(f"no script for module {part.kind}")

    def name(self, ours: str, scripts: str, count: int) -> None:
        """A parameter."""
        self.parameters.append(Names(ours, scripts, count))

    def call_of(self, part: Part, site: str = "") -> str:
        """The line of forward that runs a module; `site` is the name of the one that asks."""
        own, site = (f"self.{part.name}" if not site else f'made["{part.name}"]'), site or part.name
        match part.kind:
            case "linear":
                sizes = ", ".join(["1"] * (part["dimensions"] - 1) + [str(part["inputs"])])
                factor = f'numbers(data + "{site}.in", {sizes})'
                factor += " + 0 * x.sum()" if part["input_needs_grad"] else ""
                outputs = f'numbers(data + "{site}.out", {part["outputs"]})'
                return f"x = x + ({own}({factor}) * {outputs}).sum()"
            case "custom" | "tied":
                return f'x = {own}(x, data + "{site}")'
            case "own_weight":
                return f'x = x + ({own} * numbers(data + "{site}", {part["elements"]})).sum()'
            case "sequential":
                return f"x = {own}(x, data)"
            case "checkpoint":
                return f"x = checkpoint({own}, x, data, use_reentrant={part['is_reentrant']})"
            case "shared":
                other = next(it for it in self.model.parts() if it.name == part["module"])
                return self.call_of(other, site)
            case "external_use":
                weight = self.weight_of(part["module"])
                return f'x = x + ({weight} * numbers(data + "{site}", *{weight}.shape)).sum()'
        return ""

    def weight_of(self, name: str) -> str:
        """The weight that others use."""
        return f'made["{name}"].weight'

    def text(self) -> str:
        """All classes, those without references to others first."""
        helpers = [WEIGHTS] if "custom" in self.kinds.values() else []
        helpers += [TIED] if "tied" in self.kinds.values() else []
        return "\n\n\n".join(text.strip("\n") for text in [*helpers, *self.classes])

    def first_weights(self, variable: str) -> Iterator[str]:
        """The lines that set all weights."""
        values = {it.scripts: first_weights(it.ours, it.count) for it in self.parameters}
        yield f"first = {values}"
        yield "with torch.no_grad():"
        yield f"    for name, it in {variable}.named_parameters():"
        yield "        it.copy_(torch.tensor(first[name]).reshape(it.shape))"

    def units(self) -> list[str]:
        """The children of the body that have parameters, as FSDP2 shards them."""
        if set(REFERRING) & set(self.kinds.values()):
            return []
        named = {it.scripts.partition(".")[0] for it in self.parameters}
        return [
            part.name
            for part in self.model.body
            if part.kind != "own_weight" and part.name in named
        ]
