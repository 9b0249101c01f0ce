"""A program as a script of its own: PyTorch and the framework alone, exit code 1 if it differs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zeroproof_subject.compare import Difference, tolerance_of
from zeroproof_subject.contributions import MOST
from zeroproof_subject.history import statements
from zeroproof_subject.program import Model, Part, Program
from zeroproof_subject.script_engines import DdpScript, DeepSpeedScript, FsdpScript
from zeroproof_subject.script_megatron import MegatronScript
from zeroproof_subject.script_modules import REFERRING, ModelScript, NoScript
from zeroproof_subject.settings import Settings
from zeroproof_subject.signature import FAILURES

ENGINES = {
    "ddp": DdpScript,
    "fsdp2": FsdpScript,
    "deepspeed": DeepSpeedScript,
    "megatron": MegatronScript,
}

HEAD = '''"""{title}

Plain, unsharded PyTorch: {expected}
{engine}: {observed}
Versions: {versions}. Run: python THIS_FILE. Exit code 1: it is so here, too.
"""
'''

DATA = '''
def numbers(place, *shape):
    """Data: whole numbers from 1 to {most}."""
    values = [1.0 + crc32(f"{{place}}/{{at}}".encode()) % {most} for at in range(math.prod(shape))]
    return torch.tensor(values{dtype}).reshape(shape)
'''
# Of the numbers that weights meet; those of float32 need no word.
DTYPES = {"fp32": "", "fp16": ", dtype=torch.float16", "bf16": ", dtype=torch.bfloat16"}

CHECK = '''
def check(rank, seen, expected, tolerance):
    """Ends with exit code 1, if a number differs from plain PyTorch."""
    for name, due in expected.items():
        got = torch.zeros(len(due)) if seen.get(name) is None else seen[name].reshape(-1).float()
        if not torch.allclose(got, torch.tensor(due), rtol=tolerance, atol=tolerance):
            sys.exit(f"rank {rank}: {name} is {got.tolist()}, plain PyTorch: {due}")
'''

TAIL = '''
if __name__ == "__main__":
    mp.start_processes(main, (tempfile.mktemp(),), nprocs={ranks}, start_method="fork")
    print("as plain PyTorch")
'''

# Where ranks wait for one another.
TAIL_OF_HANG = '''
if __name__ == "__main__":
    group = mp.start_processes(main, (tempfile.mktemp(),), {ranks}, join=False, start_method="fork")
    deadline = time.monotonic() + 120
    while not group.join(timeout=1):
        if time.monotonic() > deadline:
            [process.kill() for process in group.processes]
            sys.exit("the ranks wait for one another")
    print("as plain PyTorch")
'''


@dataclass
class Finding:
    """What a script is made of."""

    program: Program
    difference: Difference
    expected: dict[str, Any]  # of the observation that differs, by name; empty for failures
    engine: str
    options: dict[str, Any]
    versions: dict[str, str]


class Script:
    """Writes the lines. `text()` raises NoScript."""

    def __init__(self, finding: Finding) -> None:
        if finding.engine not in ENGINES:
            raise NoScript(f"--engine {finding.engine}: scripts are of {', '.join(ENGINES)}")
        self.finding = finding
        self.program = finding.program
        self.settings = Settings.of(finding.program)
        self.engine = ENGINES[finding.engine](self.settings, finding.options, finding.program)
        self.forwards: dict[str, int] = {}
        self.steps: dict[str, int] = {}
        self.boundary: dict[str, bool] = {}
        self.has_ended = False
        self.skipped = frozenset(skipped_in(finding.program))
        self.models = {
            name: ModelScript(model, "Model" if at == 0 else f"Model{at}", self.skipped)
            for at, (name, model) in enumerate(finding.program.models.items())
        }

    def text(self) -> str:
        """The script."""
        main = "\n".join("    " + line for line in self.main())
        tail = TAIL_OF_HANG if self.is_hang() else TAIL
        parts = [self.head() + self.imports(), self.shared_values() + self.data()]
        parts += [it.text() for it in self.models.values()]
        parts += [CHECK] if self.finding.difference.name else []
        parts += [f"def main(rank, store):\n{main}", tail.format(ranks=self.program.ranks)]
        return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"

    def data(self) -> str:
        """The function of the numbers that weights are multiplied with."""
        dtype = self.program.dtype
        if dtype == "fp16" and self.finding.difference.what == "gradients":
            raise NoScript("no script for gradients under a loss scale")
        return DATA.format(most=MOST[dtype], dtype=DTYPES[dtype])

    def is_hang(self) -> bool:
        """Whether the script needs a time limit."""
        return self.finding.difference.what == "hang"

    def shared_values(self) -> str:
        """Variables of the script's modules."""
        lines = ["skipped = set()  # modules that do not run"] if self.skipped else []
        lines += ["made = {}  # modules that others refer to"] if self.has(*REFERRING) else []
        return "\n".join(lines) + "\n\n" if lines else ""

    def needs_weights(self) -> bool:
        """Gradients and errors depend on no weight."""
        return self.finding.difference.what not in ("gradients", *FAILURES)

    # --- the parts of the file ---

    def head(self) -> str:
        """What the script shows."""
        it = self.finding.difference
        expected, observed = "no error", it.text
        if it.name:
            expected = f"{it.name} is {list(it.expected)} ({it.what} at {it.at})"
            observed = f"{list(it.observed)} on rank {it.rank}"
        versions = ", ".join(f"{name} {value}" for name, value in self.finding.versions.items())
        return HEAD.format(
            title=f"{it.signature} ({self.finding.engine}).",
            expected=expected,
            engine=self.finding.engine,
            observed=observed.replace("\\", "/").replace('"""', "'''"),
            versions=versions,
        )

    def imports(self) -> str:
        """Of the script."""
        modules = ["math", "sys", "tempfile", *(["time"] if self.is_hang() else [])]
        modules += ["contextlib"] if '"block"' in json.dumps(self.program.document) else []
        lines = [f"import {name}" for name in sorted({*modules, *self.engine.modules})]
        lines += ["from zlib import crc32", "", *self.engine.before_torch()]
        lines += ["import torch", "import torch.distributed as dist"]
        lines += ["import torch.multiprocessing as mp", "from torch import nn"]
        lines += ["from torch.utils.checkpoint import checkpoint"] if self.has("checkpoint") else []
        return "\n".join(lines + self.engine.imports())

    def has(self, *kinds: str) -> bool:
        """Whether a model has a module of these kinds."""
        parts = (part for model in self.program.models.values() for part in model.parts())
        return any(part.kind in kinds for part in parts)

    # --- main ---

    def main(self) -> Iterator[str]:
        """What every rank does."""
        ranks = self.program.ranks
        yield from self.engine.join(ranks)
        for spec in self.program.engines:
            model, variable = self.models[spec.model], f"{spec.name}_model"
            yield f"{variable} = {model.class_name}()"
            if self.needs_weights():
                yield from model.first_weights(variable)
            if self.program.ranks_differ:
                yield "with torch.no_grad():"
                yield f"    [it.add_(rank / 2) for it in {variable}.parameters()]"
            yield from self.engine.make(spec.name, spec.parameter_groups, model.units())
        yield from self.body(self.program.body, "body")
        if not self.has_ended:
            yield from self.check_at("end", self.finding.difference.engine)
        yield "dist.barrier()"

    def body(self, body: tuple[Part, ...], place: str) -> Iterator[str]:
        """Statements up to the difference."""
        for index, part in enumerate(body):
            if self.has_ended:
                return
            do = getattr(self, "do_" + part.kind, None)
            if do is None or part.hooks:
                raise NoScript(f"no script for statement {part.kind} with hooks or of this kind")
            yield from do(part, f"{place}/{index}/{part.kind}")

    def check_at(self, at: str, engine: str) -> Iterator[str]:
        """The comparison, if it is here that a rank differs."""
        it = self.finding.difference
        if it.at != at or it.engine != engine or not it.name:
            return
        self.has_ended = True
        seen = {
            "gradients": self.engine.gradients,
            "parameters": self.engine.parameters,
            "optimizer_state": self.engine.optimizer_state,
        }
        if it.what not in seen:
            raise NoScript(f"no script for a difference of {it.what}")
        tolerance = tolerance_of(self.program, it.what).relative
        due = {name: values for name, values in self.finding.expected.items() if values is not None}
        due.setdefault(it.name, list(it.expected))
        yield f"seen = {seen[it.what](engine)}"
        yield f"check(rank, seen, {self.renamed(due, engine)}, {tolerance})"

    def renamed(self, values: dict[str, Any], engine: str) -> dict[str, Any]:
        """By the names that parameters have in the script."""
        spec = next(spec for spec in self.program.engines if spec.name == engine)
        names = {it.ours: it.scripts for it in self.models[spec.model].parameters}
        split = {key: key.partition(":") for key in values}
        return {
            names.get(name, name) + colon + state: values[key]
            for key, (name, colon, state) in split.items()
        }

    def ends_window(self, engine: str) -> bool:
        """Whether the next step() updates."""
        if not self.settings.is_managed:
            return True
        if engine in self.boundary:
            return self.boundary[engine]
        return (self.steps.get(engine, 0) + 1) % self.settings.accumulation_steps == 0

    # --- statements ---

    def do_forward(self, it: Part, at: str) -> Iterator[str]:
        """Losses by name."""
        engine = it["engine"]
        number = self.forwards.get(engine, 0)
        self.forwards[engine] = number + 1
        skips = [skip["module"] for skip in it["skips"] if skip.get("rank") is None]
        if len(skips) != len(it["skips"]):
            raise NoScript("no script for modules that are skipped on one rank")
        inputs = "torch.zeros(2, requires_grad=True)" if it["inputs_need_grad"] else "torch.zeros(2)"
        place = f'f"{self.program.seed}/{engine}/{number}/{{rank}}/"'
        if self.skipped:
            yield f"skipped.clear(), skipped.update({skips!r})"
        call = f"{engine}({inputs}, {place})"
        if it["mode"] != "train":
            yield "with torch.no_grad():"
            yield f"    {call}"
            return
        model = self.program.models[next(s.model for s in self.program.engines if s.name == engine)]
        yield f"{self.targets(model, it['as'])} = {call}"

    def targets(self, model: Model, name: str) -> str:
        """The names of what a forward returns."""
        names = ["_"] if model.has_constant_output else []
        names += [variable(name if at == 0 else f"{name}.{at}") for at in range(max(1, len(model.heads)))]
        names += [variable(f"{name}.h")] if model.returns_activations else []
        return ", ".join(names)

    def do_sum(self, it: Part, at: str) -> Iterator[str]:
        """Of values."""
        yield f"{variable(it['as'])} = {' + '.join(f'{variable(v)}.sum()' for v in it['values'])}"

    def do_scale(self, it: Part, at: str) -> Iterator[str]:
        """Without a loss scale the value itself."""
        if self.program.dtype != "fp32":
            raise NoScript("no script for 16-bit parameters")
        yield f"{variable(it['as'])} = {variable(it['value'])}"

    def do_backward(self, it: Part, at: str) -> Iterator[str]:
        """engine.backward or the tensor's own."""
        value = variable(it["value"])
        value += ".reshape(1)" if it["keeps_dimension"] else ""
        options = [f"{key}=True" for key in ("retain_graph", "create_graph") if it[key]]
        if not it["engine"]:
            yield f"{value}.backward({', '.join(options)})"
        else:
            yield self.engine.backward(it["engine"], value, options, it["scale_wrt_gas"])

    def do_step(self, it: Part, at: str) -> Iterator[str]:
        """With the comparison before or after it."""
        engine, what = it["engine"], self.finding.difference.what
        ends = self.ends_window(engine)
        if ends and what == "gradients":
            yield from self.check_at(at, engine)
        if self.has_ended:
            return
        self.steps[engine] = self.steps.get(engine, 0) + 1
        yield from self.engine.step(engine, ends)
        if ends and what == "parameters":
            yield from self.check_at(at, engine)

    def do_zero_grad(self, it: Part, at: str) -> Iterator[str]:
        """engine.zero_grad()."""
        yield self.engine.zero_grad(it["engine"])

    def do_set_boundary(self, it: Part, at: str) -> Iterator[str]:
        """Whether the next step() ends a window."""
        self.boundary[it["engine"]] = it["is_boundary"]
        yield from self.engine.set_boundary(it["engine"], it["is_boundary"])

    def do_set_learning_rate(self, it: Part, at: str) -> Iterator[str]:
        """Of one group, or of all."""
        groups = f"{self.engine.optimizer(it['engine'])}.param_groups"
        groups += "" if it["group"] is None else f"[{it['group']}:{it['group'] + 1}]"
        yield f"for group in {groups}:"
        yield f"    group['lr'] = {it['learning_rate']}"

    def do_drop(self, it: Part, at: str) -> Iterator[str]:
        """The graph goes."""
        yield f"del {variable(it['value'])}"

    def do_block(self, it: Part, at: str) -> Iterator[str]:
        """A context manager of the engine."""
        before, after = self.engine.block(it["engine"], it["kind"])
        yield before
        indent = "    " if before.startswith("with ") else ""
        for line in self.body(it.body, at):
            yield indent + line
        if not it.body:
            yield indent + "pass"
        yield from after

    def do_inspect(self, it: Part, at: str) -> Iterator[str]:
        """What the user reads, where it differs or may fail."""
        yield from self.check_at(at, it["engine"])
        if not self.has_ended and it["what"] == "optimizer_state":
            yield self.engine.optimizer_state(it["engine"])

    def do_catch(self, it: Part, at: str) -> Iterator[str]:
        """Around the user's own error."""
        yield "try:"
        for line in self.body(it.body, at):
            yield "    " + line
        yield "except InterruptedError:"
        yield "    pass"

    def do_raise(self, it: Part, at: str) -> Iterator[str]:
        """The user's own error."""
        yield "raise InterruptedError"

    def do_foreign_backward(self, it: Part, at: str) -> Iterator[str]:
        """Of a loss that no engine is in."""
        yield "(torch.ones(2, requires_grad=True) * 2).sum().backward()"


def variable(name: str) -> str:
    """A name of Python: `g1.h` is g1_h."""
    return name.replace(".", "_")


def skipped_in(program: Program) -> Iterator[str]:
    """The modules that some forward leaves out."""
    for done in statements(program):
        for skip in done.part["skips"] or ():
            yield skip["module"]
