"""What a script writes for each engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zeroproof_subject.program import Program
from zeroproof_subject.settings import Settings, optimizer_call

JOIN = """\
dist.init_process_group("gloo", init_method=f"file://{{store}}", rank=rank, world_size={ranks})
torch.manual_seed(0)"""


class TorchScript:
    """Engines whose step is torch.optim's. `a` is the engine, `a_model` its model."""

    modules: tuple[str, ...] = ()  # of Python

    def __init__(self, settings: Settings, options: dict[str, Any], program: Program) -> None:
        self.settings = settings
        self.options = options
        self.program = program

    def before_torch(self) -> list[str]:
        """Lines above its import."""
        return []

    def join(self, ranks: int) -> Iterator[str]:
        """The group of all ranks."""
        yield from JOIN.format(ranks=ranks).splitlines()

    def make(self, name: str, groups: int, units: list[str]) -> Iterator[str]:
        """An engine and its optimizer."""
        yield from self.wrap(name, units)
        yield f"parameters = [it for it in {name}_model.parameters() if it.requires_grad]"
        yield f"{name}_optimizer = {optimizer_call(self.settings, groups_of(groups))}"

    def wrap(self, name: str, units: list[str]) -> Iterator[str]:
        """The engine around the model."""
        raise NotImplementedError

    def optimizer(self, name: str) -> str:
        """Has the groups."""
        return f"{name}_optimizer"

    def backward(self, name: str, value: str, options: list[str], is_divided: bool) -> str:
        """Divided by the number of micro-batches."""
        steps = self.settings.accumulation_steps if is_divided else 1
        value = f"({value} / {steps})" if steps > 1 else value
        return f"{value}.backward({', '.join(options)})"

    def step(self, name: str, ends_window: bool) -> Iterator[str]:
        """Lines at a window's end alone; a comment within a window."""
        if not ends_window:
            yield "# a micro-batch ends"
            return
        if self.settings.clipping > 0:
            clip = "torch.nn.utils.clip_grad_norm_"
            yield f"{clip}({name}_model.parameters(), {self.settings.clipping})"
        yield f"{name}_optimizer.step()"
        yield self.zero_grad(name)

    def zero_grad(self, name: str) -> str:
        """All gradients."""
        return f"{name}_model.zero_grad()"

    def set_boundary(self, name: str, is_boundary: bool) -> Iterator[str]:
        """Decides when step() does something: seen there."""
        yield from ()

    def block(self, name: str, kind: str) -> tuple[str, list[str]]:
        """The line before the body, and those after it."""
        return ("with contextlib.nullcontext():", []) if kind != "no_sync" else self.no_sync(name)

    def no_sync(self, name: str) -> tuple[str, list[str]]:
        """Gradients stay on their rank."""
        raise NotImplementedError

    def whole(self, tensor: str) -> str:
        """Of all ranks."""
        return tensor

    def gradients(self, name: str) -> str:
        """A dict by name."""
        grad = self.whole("it.grad")
        there = f"{{key: {grad} for key, it in {name}_model.named_parameters() if it.grad is not None}}"
        return there

    def parameters(self, name: str) -> str:
        """A dict by name."""
        return f"{{key: {self.whole('it.detach()')} for key, it in {name}_model.named_parameters()}}"

    def optimizer_state(self, name: str) -> str:
        """A dict by "parameter:state"."""
        value = self.whole("value")
        return (
            f"{{f'{{key}}:{{kept}}': {value} for key, it in {name}_model.named_parameters()"
            f" for kept, value in {name}_optimizer.state[it].items() if kept != 'step'}}"
        )


class DdpScript(TorchScript):
    """DistributedDataParallel."""

    def imports(self) -> list[str]:
        """Of the engine."""
        return ["from torch.nn.parallel import DistributedDataParallel"]

    def wrap(self, name: str, units: list[str]) -> Iterator[str]:
        """With small buckets."""
        view = ", gradient_as_bucket_view=True" if self.options["gradient_as_bucket_view"] else ""
        size = f"bucket_cap_mb={self.options['bucket_bytes']} / 2**20"
        arguments = f"{name}_model, find_unused_parameters=True, {size}{view}"
        yield f"{name} = DistributedDataParallel({arguments})"

    def no_sync(self, name: str) -> tuple[str, list[str]]:
        """DDP's own."""
        return f"with {name}.no_sync():", []


class FsdpScript(TorchScript):
    """fully_shard."""

    def imports(self) -> list[str]:
        """Of the engine."""
        return [
            "from torch.distributed.device_mesh import init_device_mesh",
            "from torch.distributed.fsdp import fully_shard",
        ]

    def wrap(self, name: str, units: list[str]) -> Iterator[str]:
        """Each module of the body, then the root."""
        yield "mesh = init_device_mesh('cpu', (dist.get_world_size(),))"
        more = "" if self.options["reshard_after_forward"] else ", reshard_after_forward=False"
        for unit in units:
            yield f"fully_shard({name}_model.{unit}, mesh=mesh{more})"
        yield f"{name} = fully_shard({name}_model, mesh=mesh{more})"

    def no_sync(self, name: str) -> tuple[str, list[str]]:
        """A flag that is put back."""
        flag = f"{name}.set_requires_gradient_sync"
        return f"{flag}(False)", [f"{flag}(True)"]

    def whole(self, tensor: str) -> str:
        """Of all ranks."""
        return f"{tensor}.full_tensor()"


READERS = ("safe_get_full_fp32_param", "safe_get_full_grad", "safe_get_full_optimizer_state")


class DeepSpeedScript(TorchScript):
    """deepspeed.initialize."""

    modules = ("os",)

    def before_torch(self) -> list[str]:
        """On CPUs."""
        return ['os.environ["DS_ACCELERATOR"] = "cpu"']

    def imports(self) -> list[str]:
        """Of the engine."""
        return [
            "import deepspeed",
            f"from deepspeed.utils import {', '.join(READERS)}",
            "",
            "sys.modules['deepspeed.comm.torch'].build_shm_op = lambda: None  # no compiler needed",
        ]

    def join(self, ranks: int) -> Iterator[str]:
        """DeepSpeed asks the environment for them."""
        yield 'os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))'
        yield f'os.environ.update(WORLD_SIZE="{ranks}", LOCAL_SIZE="{ranks}")'
        yield 'os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")'
        yield from super().join(ranks)

    def make(self, name: str, groups: int, units: list[str]) -> Iterator[str]:
        """With PyTorch's own optimizer."""
        from zeroproof_subject.engines.deepspeed import configuration_of

        config = configuration_of(self.program.config, self.options["stage"])
        yield f"config = {config}"
        yield f"parameters = [it for it in {name}_model.parameters() if it.requires_grad]"
        yield f"optimizer = {optimizer_call(self.settings, groups_of(groups))}"
        yield f"{name}, *_ = deepspeed.initialize(model={name}_model, optimizer=optimizer,"
        yield "    model_parameters=parameters, config=config)"

    def optimizer(self, name: str) -> str:
        """Has the groups."""
        return f"{name}.optimizer"

    def backward(self, name: str, value: str, options: list[str], is_divided: bool) -> str:
        """The engine's."""
        options = options if is_divided else [*options, "scale_wrt_gas=False"]
        return f"{name}.backward({', '.join([value, *options])})"

    def step(self, name: str, ends_window: bool) -> Iterator[str]:
        """The engine's."""
        yield f"{name}.step()"

    def zero_grad(self, name: str) -> str:
        """The engine's."""
        return f"{name}.zero_grad()"

    def set_boundary(self, name: str, is_boundary: bool) -> Iterator[str]:
        """The engine's."""
        yield f"{name}.set_gradient_accumulation_boundary({is_boundary})"

    def block(self, name: str, kind: str) -> tuple[str, list[str]]:
        """The engine's."""
        return f"with {name}.{'no_sync' if kind == 'no_sync' else 'coalesce_grad_reduction'}():", []

    def gradients(self, name: str) -> str:
        """By safe_get_full_grad."""
        parameters = f"{name}_model.named_parameters()"
        return f"{{key: safe_get_full_grad(it) for key, it in {parameters} if it.requires_grad}}"

    def parameters(self, name: str) -> str:
        """Gathered in stage 3."""
        read = "safe_get_full_fp32_param(it)" if self.options["stage"] == 3 else "it.detach()"
        return f"{{key: {read} for key, it in {name}_model.named_parameters()}}"

    def optimizer_state(self, name: str) -> str:
        """By safe_get_full_optimizer_state."""
        keys = "('exp_avg', 'exp_avg_sq')" if self.settings.optimizer != "SGD" else "()"
        return (
            f"{{f'{{key}}:{{kept}}': safe_get_full_optimizer_state(it, kept)"
            f" for key, it in {name}_model.named_parameters() for kept in {keys}}}"
        )


def groups_of(count: int) -> str:
    """Parameters go to groups in turns."""
    if count <= 1:
        return "parameters"
    return f"[{{'params': parameters[at::{count}]}} for at in range({count})]"
