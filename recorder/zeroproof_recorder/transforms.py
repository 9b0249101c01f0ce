"""functorch transforms and autocast regions."""

from __future__ import annotations

from typing import Any

import torch._functorch.eager_transforms as eager_transforms
import torch._functorch.vmap as vmap
from torch.amp.autocast_mode import autocast

from .calls import Call
from .guard import Observer
from .names import dtype_word
from .patches import PatchBook
from .session import Session, transform_stack

_LEVELS = (
    (eager_transforms, "_grad_increment_nesting", "_grad_decrement_nesting", "Grad"),
    (eager_transforms, "_jvp_increment_nesting", "_jvp_decrement_nesting", "Jvp"),
    (vmap, "_vmap_increment_nesting", "_vmap_decrement_nesting", "Vmap"),
)


def install(session: Session, patches: PatchBook) -> None:
    """Watches the functions that enter and leave a level."""
    for module, enter, leave, kind in _LEVELS:
        observer = session.guard.observer(f"transforms.{kind.lower()}", ("ft.push", "ft.pop"))
        _watch_level(session, patches, observer, (module, enter, leave), kind)


def install_autocast(session: Session, patches: PatchBook) -> None:
    """Emits autocast.enter and autocast.exit, those of recomputes included."""
    observer = session.guard.observer("autocast", ("autocast.enter", "autocast.exit"))

    def entered(call: Call) -> None:
        if call.failure is None:
            session.emit("autocast.enter", _autocast_fields(call.subject))

    def leaves(call: Call) -> None:
        session.emit("autocast.exit", {"device": str(call.subject.device)})

    patches.observe(autocast, "__enter__", observer, after=entered)
    patches.observe(autocast, "__exit__", observer, before=leaves)


def _autocast_fields(region: Any) -> dict[str, Any]:
    dtype = getattr(region, "fast_dtype", None)
    return {
        "device": str(region.device),
        "enabled": bool(region._enabled),
        "dtype": dtype_word(dtype) if dtype is not None else None,
        "cache": bool(region._cache_enabled),
    }


def _watch_level(
    session: Session, patches: PatchBook, observer: Observer, ends: tuple, kind: str
) -> None:
    module, enter, leave = ends

    def pushed(call: Call) -> None:
        if call.failure is None:
            session.emit("ft.push", {"level": call.result, "kind": kind})

    def pops(_call: Call) -> None:
        stack = transform_stack()
        session.emit("ft.pop", {"level": stack[-1][0] if stack else -1, "kind": kind})

    if patches.observe(module, enter, observer, after=pushed):
        patches.observe(module, leave, observer, before=pops)
