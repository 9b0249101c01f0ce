"""DeepSpeed's engine: its calls, its marks, and the parts that belong to its stage."""

from __future__ import annotations

import sys
from typing import Any, Optional

from .brackets import CallWatch
from .calls import Call
from .hook_manager import HookManager
from .manager_policy import manager_policy
from .names import NameBook
from .options import Detail
from .patches import PatchBook
from .session import Session
from .zero3 import Zero3
from .zero12 import Zero12

ENGINE_METHODS = (
    "forward",
    "_forward_prologue",
    "_forward_epilogue",
    "backward",
    "step",
    "_backward_prologue",
    "_backward_epilogue",
    "_backward_post_hook",
    "_backward_prologue_per_tensor",
    "allreduce_gradients",
    "_take_model_step",
    "zero_grad",
    "scale",
    "buffered_allreduce_fallback",
    "coalesce_grad_reduction",
    "load_checkpoint",  # its counters are those of the file
)
BF16_METHODS = (
    "backward_prologue",
    "backward_epilogue",
    "update_hp_grads",
    "step",
    "zero_grad",
    "clear_hp_grads",
)
COUNT = "count_used_parameters_in_backward"
BOUNDARY = "set_gradient_accumulation_boundary"
_BOUNDARY_WORDS = {True: "true", False: "false", None: "auto"}
COUNT_MARK = "count_used_parameters"
ZERO = ("engine.*", "bucket.*", "zmod.*", "zparam.*")


def is_engine(model: Any) -> bool:
    """Whether an object is a DeepSpeed engine; does not import DeepSpeed."""
    module = sys.modules.get("deepspeed.runtime.engine")
    return module is not None and isinstance(model, module.DeepSpeedEngine)


class Engines:
    """All DeepSpeed engines of the process, numbered as they are attached."""

    def __init__(self, session: Session, names: NameBook):
        self._session = session
        self._names = names
        self._numbers: dict[int, int] = {}  # of engines, optimizers, managers, coordinators
        self._attached: list[Any] = []

    def attach(self, engine, number: int, patches: PatchBook) -> None:
        """Watches one engine; the classes with the first."""
        is_first = not self._attached
        self._attached.append(engine)
        for part in _parts(engine):
            self._numbers.setdefault(id(part), number)
        if is_first:
            self._watch_classes(patches)
        self._watch_post_hook(engine, patches)
        if self._session.options.detail >= Detail.ENGINE:
            self._mark_configuration(engine)

    def number_of(self, part: Any) -> int:
        """The engine that an engine, optimizer, manager or coordinator belongs to."""
        return self._numbers.get(id(part), 0)

    def has(self, part: Any) -> bool:
        """Whether this engine has been attached."""
        return any(part is engine for engine in self._attached)

    def facts(self, engine) -> dict[str, Any]:
        """What the header says."""
        words = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}
        dtype = str(next(engine.module.parameters()).dtype)
        return {
            "stage": int(engine.zero_optimization_stage()),
            "dtype": words.get(dtype, dtype),
            "policy": manager_policy(),
        }

    def _watch_classes(self, patches: PatchBook) -> None:
        session, names = self._session, self._names
        self._watch_engine(patches)
        if session.options.detail < Detail.ENGINE:
            return
        parts = (
            ("hook_manager", ("bhs.*",), HookManager(session, self.number_of)),
            ("zero12", ZERO, Zero12(session, names, self.number_of)),
            ("zero3", ZERO, Zero3(session, names, self.number_of, self._attached)),
        )
        for name, lost, part in parts:
            session.guard.observer(name, lost).guarded(part.install)(patches)
        self._watch_count(patches)
        bf16 = sys.modules.get("deepspeed.runtime.bf16_optimizer")
        watch = CallWatch(session, patches, "bf16")
        for name in BF16_METHODS:
            owner = getattr(bf16, "BF16_Optimizer", None)
            watch.bracket(owner, name, f"bf16.{name}", self._engine_field)

    def _watch_engine(self, patches: PatchBook) -> None:
        owner = sys.modules["deepspeed.runtime.engine"].DeepSpeedEngine
        watch = CallWatch(self._session, patches, "engine")
        for name in ENGINE_METHODS:
            watch.bracket(owner, name, f"engine.{name.lstrip('_')}", self._engine_fields)
        observer = self._session.guard.observer("engine.boundary", ("mark",))
        patches.observe(owner, BOUNDARY, observer, before=self._boundary_is_set)

    def _boundary_is_set(self, call: Call) -> None:
        self._mark_boundary(call.subject, call.argument("is_boundary"))

    def _mark_boundary(self, engine, is_boundary: Optional[bool]) -> None:
        fields = {"label": f"gradient_accumulation_boundary:{_BOUNDARY_WORDS[is_boundary]}"}
        self._session.emit("mark", {**fields, "engine": self.number_of(engine)})

    def _engine_fields(self, call: Call) -> dict[str, Any]:
        engine = call.subject
        return {
            "engine": self.number_of(engine),
            "micro": engine.micro_steps,
            "gstep": engine.global_steps,
        }

    def _engine_field(self, call: Call) -> dict[str, Any]:
        return {"engine": self.number_of(call.subject)}

    def _watch_post_hook(self, engine, patches: PatchBook) -> None:
        """The optimizer keeps bound methods of the engine: they are looked up again."""
        hooks = getattr(engine.optimizer, "_grad_acc_post_hooks", None)
        for hook in list(hooks or ()):
            name = getattr(hook, "__name__", "")
            if getattr(hook, "__self__", None) is engine and name in ENGINE_METHODS:
                patches.look_up_again(hooks, hook)

    def _watch_count(self, patches: PatchBook) -> None:
        def counted(call: Call) -> None:
            self._session.emit("mark", {"label": f"{COUNT_MARK}:{call.result}"})

        for name in ("stage_1_and_2", "stage3"):
            module = sys.modules.get(f"deepspeed.runtime.zero.{name}")
            if hasattr(module, COUNT):
                observer = self._session.guard.observer("count_used_parameters", ("mark",))
                patches.observe(module, COUNT, observer, after=counted)

    def _mark_configuration(self, engine) -> None:
        is_boundary = getattr(engine, "_is_gradient_accumulation_boundary", None)
        if is_boundary is not None:  # set before the recorded steps
            self._mark_boundary(engine, is_boundary)
        for word, value in _configuration(engine).items():
            self._session.emit(
                "mark", {"label": f"{word}:{value}", "engine": self.number_of(engine)}
            )


def _configuration(engine) -> dict[str, Any]:
    marks = {"gradient_accumulation_steps": engine.gradient_accumulation_steps()}
    stage = engine.zero_optimization_stage()
    if stage:
        marks["reduce_bucket_size"] = engine.zero_reduce_bucket_size()
    if engine.gradient_clipping():
        marks["gradient_clipping"] = engine.gradient_clipping()
    if stage == 3:
        # Not the prefetch bucket: DeepSpeed gathers a set, whose order is unknown.
        marks["stage3_max_live_parameters"] = engine.zero_max_live_parameters()
    return marks


def _parts(engine) -> list[Any]:
    optimizer = engine.optimizer
    parts = [engine, optimizer, getattr(optimizer, "_backward_hook_state", None)]
    offload = getattr(optimizer, "parameter_offload", None)
    if offload is not None:
        parts += [offload, offload.get_param_coordinator()]
    return [part for part in parts if part is not None]
