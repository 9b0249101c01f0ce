"""DeepSpeed's engine, ZeRO stages 0 to 3."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
import os
from typing import Any

import torch
from torch import Tensor

from zeroproof_subject import capability, device
from zeroproof_subject.engine import Job
from zeroproof_subject.models import ExpertsNode
from zeroproof_subject.settings import Settings, make_optimizer

OPTIONS = {"stage": 1}
NUMBERS = itertools.count()  # of engines
MISSING_IS_ZERO = True  # flat groups have no parameter without a gradient
DIVIDES_TENSOR_BACKWARD = True
CASES_OF_A_GROUP = 25  # stage 3 keeps every engine alive

# Keys of a program's configuration that are DeepSpeed's as well.
PASSED_ON = (
    "gradient_accumulation_steps",
    "managed_gradient_accumulation",
    "gradient_clipping",
    "prescale_gradients",
    "gradient_predivide_factor",
    "zero_force_ds_cpu_optimizer",
    "fp16",
    "bf16",
    "data_types",
)


def configuration_of(program: dict[str, Any], stage: int) -> dict[str, Any]:
    """A ds_config.json without an optimizer of DeepSpeed's own, which would need a compiler."""
    given = {key: program[key] for key in PASSED_ON if key in program}
    zero = {"overlap_comm": False, **program.get("zero_optimization", {}), "stage": stage}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 1.0,
        "zero_force_ds_cpu_optimizer": False,
        **given,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 1 << 30,
    }


class DeepSpeedEngine:
    """deepspeed.initialize, and what its pages say about reading whole values."""

    def __init__(self, job: Job, stage: int) -> None:
        import deepspeed

        self.job = job
        self.stage = stage
        optimizer = make_optimizer(job.settings, job.optimizer_groups())
        if stage == 3 and any(isinstance(it, ExpertsNode) for it in job.model.modules()):
            importlib.import_module("deepspeed.utils").set_z3_leaf_modules(job.model, [ExpertsNode])
        self.engine, *_ = deepspeed.initialize(
            model=job.model,
            optimizer=optimizer,
            model_parameters=[it for group in job.groups for it in group],
            config=configuration_of(job.config, stage),
        )
        self.tensor_fragment = importlib.import_module("deepspeed.utils")
        self.gathered_parameters = deepspeed.zero.GatheredParameters
        # What is not there must not be read: ranks that own it raise, and the others wait for them.
        self.has_gradients = False
        self.has_state = False
        self.has_loaded = False
        self.saved: dict[str, bool] = {}  # whether the state of the optimizer was there, by tag
        # Ranks make engines in the same order.
        self.folder = os.path.join(os.environ["ZEROPROOF_FOLDER"], f"engine{next(NUMBERS)}")
        if not job.has_callbacks:
            self.count_hooks()
        self.is_16_bit = self.engine.fp16_enabled() or self.engine.bfloat16_enabled()

    def count_hooks(self) -> None:
        """As where PyTorch's autograd engine has no callback after a backward."""
        state = getattr(self.engine.optimizer, "_backward_hook_state", None)
        if state is not None:
            state.queue_post_backward_callback = lambda: False

    def __call__(self, *arguments: Any) -> Any:
        return self.engine(*arguments)

    def backward(self, loss: Tensor, **options: bool) -> None:
        """engine.backward, which divides by the number of micro-batches."""
        self.engine.backward(loss, **options)
        self.note_backward()

    def scale(self, loss: Tensor) -> Tensor:
        """engine.scale, where there is a loss scale."""
        return self.engine.scale(loss) if self.engine.fp16_enabled() else loss

    def loss_scale(self) -> float:
        """What gradients are multiplied with until the step."""
        if not self.engine.fp16_enabled():
            return 1.0
        scale = getattr(self.engine.optimizer, "cur_scale", None)
        return float(self.engine.optimizer.loss_scale if scale is None else scale)

    def tensor_backward(self, loss: Tensor, **options: bool) -> None:
        """The engine's hooks do what backward does."""
        loss.backward(**options)
        self.note_backward()

    def note_backward(self) -> None:
        """Gradients may be there."""
        # The backward of a window's last micro-batch makes the averaged gradients.
        self.has_gradients = self.has_gradients or self.stage == 0 or self.will_step()

    def will_step(self) -> bool:
        """A window ends."""
        is_managed = self.job.settings.is_managed
        return self.engine.is_gradient_accumulation_boundary() if is_managed else True

    def step(self) -> None:
        """engine.step."""
        if self.will_step():
            self.has_state = self.has_state or self.has_gradients
            self.has_gradients = False
        self.engine.step()

    def zero_grad(self) -> None:
        """engine.zero_grad."""
        self.engine.zero_grad()
        self.has_gradients = False

    def set_boundary(self, is_boundary: bool) -> None:
        """Holds until it is called again."""
        self.engine.set_gradient_accumulation_boundary(is_boundary)

    def no_sync(self) -> contextlib.AbstractContextManager:
        """The engine's own."""
        return self.engine.no_sync()

    def coalesce(self) -> contextlib.AbstractContextManager:
        """One reduction for all backwards inside."""
        return self.engine.coalesce_grad_reduction()

    def gradients(self) -> dict[str, Tensor | None] | None:
        """By safe_get_full_grad; in unmanaged windows step() makes them."""
        if not self.job.settings.is_managed:
            return None
        if not self.has_gradients:
            return {}
        read = self.tensor_fragment.safe_get_full_grad
        scale = self.loss_scale()
        read_all = {
            name: copy_of(read(it))
            for name, it in self.job.model.named_parameters()
            if it.requires_grad
        }
        return {
            name: it if it is None or scale == 1.0 else it.float() / scale
            for name, it in read_all.items()
        }

    def parameters(self) -> dict[str, Tensor]:
        """The masters of a 16-bit model; other parameters are gathered in stage 3."""
        named = dict(self.job.model.named_parameters())
        values: dict[str, Tensor] = {}
        if self.is_16_bit and self.stage > 0:
            read = self.tensor_fragment.safe_get_full_fp32_param
            values = {name: copy_of(read(it)) for name, it in named.items() if it.requires_grad}
        rest = {name: it for name, it in named.items() if name not in values}
        context: Any = contextlib.nullcontext()
        if self.stage == 3 and rest:
            context = self.gathered_parameters(list(rest.values()))
        with context:
            values |= {name: copy_of(it) for name, it in rest.items()}
        return {name: values[name] for name in named}

    def optimizer_state(self) -> dict[str, dict[str, Tensor]]:
        """By safe_get_full_optimizer_state."""
        read = self.tensor_fragment.safe_get_full_optimizer_state
        keys = state_keys(self.job.settings) if self.has_state else ()
        states: dict[str, dict[str, Tensor]] = {}
        for name, parameter in self.job.model.named_parameters():
            if not self.can_read_state(parameter):
                continue
            values = {key: copy_of(read(parameter, key)) for key in keys}
            states[name] = {key: it for key, it in values.items() if it is not None}
        return states

    def can_read_state(self, parameter: torch.nn.Parameter) -> bool:
        """Stages 1 and 2 link the state of all groups after the first group's first step, once.

        The other groups have none by then (0.19.8), and a load takes the links away. Ranks that
        own a part raise while the others wait for them.
        """
        if self.stage not in (1, 2):
            return True
        if self.has_loaded:
            return False
        return any(parameter is it for it in self.job.groups[0])

    def save(self, tag: str) -> None:
        """engine.save_checkpoint, into the folder of the group."""
        self.saved[tag] = self.has_state
        self.engine.save_checkpoint(self.folder, tag)

    def load(self, tag: str) -> None:
        """engine.load_checkpoint."""
        path, _ = self.engine.load_checkpoint(self.folder, tag)
        if path is None:
            raise FileNotFoundError(f"no checkpoint was loaded for tag {tag!r}")
        self.has_state = self.saved[tag]
        self.has_loaded = True

    def set_learning_rate(self, group: int | None, learning_rate: float) -> None:
        """In the groups of the engine's optimizer."""
        for at, options in enumerate(self.engine.optimizer.param_groups):
            if group in (None, at):
                options["lr"] = learning_rate

    def close(self) -> None:
        """Ends the engine."""
        self.engine.destroy()


def copy_of(tensor: Tensor | None) -> Tensor | None:
    """A copy that no later statement changes."""
    return None if tensor is None else tensor.detach().clone()


def state_keys(settings: Settings) -> tuple[str, ...]:
    """What the optimizer keeps of each parameter. To ask for more is an error on some ranks."""
    if settings.optimizer != "SGD":
        return ("exp_avg", "exp_avg_sq")
    return ("momentum_buffer",) if (settings.params or {}).get("momentum") else ()


def make(job: Job, **options) -> DeepSpeedEngine:
    """An engine for a job."""
    return DeepSpeedEngine(job, **(OPTIONS | options))


def prepare() -> None:
    """Imports DeepSpeed; on CPUs without the operator that wants a compiler."""
    os.environ.setdefault("DS_ACCELERATOR", "cuda" if device.gpus() else "cpu")
    import deepspeed  # noqa: F401

    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    # PyTorch multiplies float16 on any CPU; DeepSpeed asks for one that is fast at it.
    accelerator = importlib.import_module("deepspeed.accelerator").get_accelerator()
    accelerator.is_fp16_supported = lambda: True
    # By name: the package has a `torch` too.
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None


def versions() -> dict[str, str]:
    """What findings depend on."""
    import deepspeed

    return {"torch": torch.__version__, "deepspeed": deepspeed.__version__}


ZERO_KEYS = {
    "/zero_optimization/reduce_bucket_size": True,
    "/zero_optimization/contiguous_gradients": True,
    "/zero_optimization/reduce_scatter": True,
    "/zero_optimization/overlap_comm": True,
    "/prescale_gradients": True,
    "/gradient_predivide_factor": True,
    "/zero_optimization/offload_optimizer/device": True,
    "/zero_force_ds_cpu_optimizer": True,
}
PRECISION = {
    "/fp16/enabled": True,
    "/fp16/loss_scale": True,
    "/fp16/initial_scale_power": True,
    "/fp16/hysteresis": True,
    # Exact gradients have room for a scale that grows with every second step.
    "/fp16/loss_scale_window": [1000, 2],
    "/fp16/min_loss_scale": True,
    "/fp16/consecutive_hysteresis": True,
    "/bf16/enabled": True,
}
# What the engine says that it refuses: engine.py, _backward_post_hook and step.
REFUSALS = ("backward_without_loss_scaling", "step_inside_no_sync")
EXCEPTIONS: dict = {
    "catch": {},
    "raise": {},
    "hook": {"at": ["forward", "gradient", "loss"], "module": True, "body": ["raise"]},
}
FLAT_KEYS = {
    "/zero_optimization/allgather_bucket_size": True,
    "/zero_optimization/use_multi_rank_bucket_allreduce": True,
}
STAGE3_KEYS = {
    f"/zero_optimization/{key}": True
    for key in (
        "sub_group_size",
        "stage3_prefetch_bucket_size",
        "stage3_param_persistence_threshold",
        "stage3_model_persistence_threshold",
        "stage3_max_live_parameters",
        "stage3_max_reuse_distance",
    )
}


def has_coalesced_reduction() -> bool:
    """Not in 0.18.9."""
    from deepspeed.runtime.engine import DeepSpeedEngine as Framework

    return hasattr(Framework, "coalesce_grad_reduction")


def has_unmanaged_accumulation() -> bool:
    """Since 0.19.5."""
    from deepspeed.runtime import constants

    return hasattr(constants, "MANAGED_GRADIENT_ACCUMULATION")


def capabilities(options: dict) -> dict:
    """Of the stage."""
    stage = (OPTIONS | options)["stage"]
    config = {**capability.CONFIG, **PRECISION, "/zero_optimization/stage": [stage]}
    if stage > 0:
        config |= {**ZERO_KEYS, "/data_types/grad_accum_dtype": True}
    if stage in (1, 2):
        config |= FLAT_KEYS
    if stage == 3:
        config |= STAGE3_KEYS
    blocks = ["no_sync"] if stage < 2 else []
    blocks += ["coalesce"] if stage > 0 and has_coalesced_reduction() else []
    document = capability.document("deepspeed", versions(), config=config, blocks=blocks)
    document["engines"] = 1
    document["statements"]["backward"]["engine"] = True
    document["statements"]["call_module"] = {}
    document["statements"] |= {**EXCEPTIONS, "save": {}, "load": {}}
    document["statements"]["transform"] = {"kind": ["grad"]}
    document["modules"] |= {"tiled": {}, "experts": {}}
    document["statements"]["forward"] |= {"expert": True, "hooks": True}
    if stage > 0:
        document["world"]["autograd"] = ["full", "no_callback"]
        document["refusals"] = list(REFUSALS)
    if has_unmanaged_accumulation():
        config["/managed_gradient_accumulation"] = True
    # 0.19.8 cannot broadcast a scalar parameter: engine.py views it as bytes.
    document["modules"]["custom"]["shape"] = capability.SHAPES
    return document
