"""What a script writes for Megatron-core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from zeroproof_subject.program import Program
from zeroproof_subject.script_engines import TorchScript
from zeroproof_subject.script_modules import NoScript
from zeroproof_subject.settings import Settings

ON_CPUS = '''

# Megatron-core names CUDA devices and types; here they are those of the CPU.
CPU, type_of = torch.device("cpu"), torch.Tensor.type


def on_cpu(make):
    """A factory that takes "cuda" for the CPU."""
    return lambda *a, **k: make(*a, **({**k, "device": CPU} if k.get("device") == "cuda" else k))


torch.tensor, torch.zeros, torch.empty = map(on_cpu, (torch.tensor, torch.zeros, torch.empty))
torch.cuda.current_device, torch.cuda.current_stream = lambda: CPU, lambda: None
torch.Tensor.type = lambda it, *a: type_of(it, *a) if a else type_of(it).replace("torch.", "torch.cuda.")
'''
WHOLE = '''

def whole(module, data):
    """Of each parameter, from the shards of all ranks."""
    found, ranks = {}, dist.get_world_size()
    for buffer in module.buffers:
        for at, bucket in enumerate(getattr(it, data) for it in buffer.buckets):
            parts = [part.clone() for part in bucket.chunk(ranks)]
            dist.all_gather(parts, parts[dist.get_rank()].clone())
            flat = torch.cat(parts)
            for parameter, (start, end, number) in buffer.param_index_map.items():
                if number == at:
                    offset = buffer.buckets[at].offset
                    found[parameter] = flat[start - offset : end - offset]
    return found
'''


class MegatronScript(TorchScript):
    """DistributedDataParallel and get_megatron_optimizer."""

    def __init__(self, settings: Settings, options: dict[str, Any], program: Program) -> None:
        super().__init__(settings, options, program)
        if program.dtype != "fp32":
            raise NoScript("no script for 16-bit parameters of Megatron-core")
        if options["overlap_grad_reduce"] and settings.accumulation_steps > 1:
            raise NoScript("no script for windows of several micro-batches that overlap")

    def imports(self) -> list[str]:
        """Of the engine."""
        distributed, optimizer = "DistributedDataParallel", "OptimizerConfig, get_megatron_optimizer"
        lines = [
            "from megatron.core import parallel_state",
            f"from megatron.core.distributed import {distributed}, {distributed}Config",
            f"from megatron.core.optimizer import ParamKey, ParamPredicate, {optimizer}",
            "from megatron.core.transformer.transformer_config import TransformerConfig",
            *ON_CPUS.splitlines(),
        ]
        return lines + (WHOLE.splitlines() if self.is_distributed() else [])

    def is_distributed(self) -> bool:
        """The optimizer is."""
        return self.options["use_distributed_optimizer"]

    def join(self, ranks: int) -> Iterator[str]:
        """And Megatron-core's groups."""
        yield from super().join(ranks)
        yield "parallel_state.initialize_model_parallel()"

    def make(self, name: str, groups: int, units: list[str]) -> Iterator[str]:
        """With what differs from Megatron-core's defaults."""
        from megatron.core.distributed import DistributedDataParallelConfig
        from megatron.core.optimizer import OptimizerConfig

        from zeroproof_subject.engines.megatron_config import ddp_members, optimizer_members

        ddp = ddp_members(self.options, self.program.config)
        members = optimizer_members(self.settings, self.options, self.program.config)
        yield f"config = DistributedDataParallelConfig({arguments_of(DistributedDataParallelConfig, ddp)})"
        yield "transformer = TransformerConfig(num_layers=1, hidden_size=2, num_attention_heads=1)"
        yield f"{name} = DistributedDataParallel(transformer, config, {name}_model)"
        yield f"{name}.broadcast_params()"
        yield f"config = OptimizerConfig({arguments_of(OptimizerConfig, members)})"
        yield "groups = {}"
        if groups > 1:
            yield f"ids = [id(it) for it in {name}_model.parameters() if it.requires_grad]"
            yield f"for at in range(1, min({groups}, len(ids))):"
            yield f"    is_of = lambda it, at=at: ids.index(id(it)) % min({groups}, len(ids)) == at"
            yield '    key = ParamKey(predicate=ParamPredicate(f"group{at}", is_of))'
            yield '    groups[key] = {"max_lr": config.lr * (1 + at)}'
        yield f"{name}_optimizer = get_megatron_optimizer(config, [{name}], config_overrides=groups)"

    def step(self, name: str, ends_window: bool) -> Iterator[str]:
        """Ends a window."""
        if not ends_window:
            yield "# a micro-batch ends"
            return
        yield f"{name}.finish_grad_sync()"
        yield f"{name}_optimizer.step()"
        yield self.zero_grad(name)

    def zero_grad(self, name: str) -> str:
        """As an iteration begins."""
        return f"{name}.zero_grad_buffer(), {name}_optimizer.zero_grad()"

    def no_sync(self, name: str) -> tuple[str, list[str]]:
        """Megatron-core's own."""
        return f"with {name}.no_sync():", []

    def gradients(self, name: str) -> str:
        """After the reduction."""
        found = self.found(name, "grad_data", "it.main_grad")
        return f"{name}.finish_grad_sync() or {found}"

    def parameters(self, name: str) -> str:
        """From the shards, where a gather waits for the next forward."""
        if self.options["overlap_param_gather"]:
            return self.found(name, "param_data", "it.detach()")
        return super().parameters(name)

    def found(self, name: str, data: str, own: str) -> str:
        """A dict by name."""
        value = f"whole({name}, '{data}')[it]" if self.is_distributed() else own
        named = f"{name}_model.named_parameters()"
        return f"{{key: {value} for key, it in {named} if hasattr(it, 'main_grad')}}"

    def optimizer_state(self, name: str) -> str:
        """Is in shards."""
        raise NoScript("no script for the optimizer's state of Megatron-core")


def arguments_of(kind: type, members: dict[str, Any]) -> str:
    """Those that are not the defaults of a dataclass."""
    defaults = {it.name: it.default for it in fields(kind)}
    return ", ".join(f"{key}={it!r}" for key, it in members.items() if it != defaults[key])
