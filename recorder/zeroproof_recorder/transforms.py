"""functorch transforms and autocast regions."""

from __future__ import annotations

import functools

import torch._functorch.eager_transforms as eager_transforms
import torch._functorch.vmap as vmap
from torch.amp.autocast_mode import autocast

from .names import dtype_word
from .patches import PatchBook
from .session import Session, transform_stack

_LEVELS = (
    (eager_transforms, "_grad_increment_nesting", "_grad_decrement_nesting", "Grad"),
    (eager_transforms, "_jvp_increment_nesting", "_jvp_decrement_nesting", "Jvp"),
    (vmap, "_vmap_increment_nesting", "_vmap_decrement_nesting", "Vmap"),
)


def install(session: Session, patches: PatchBook) -> None:
    """Watches the functions that enter and leave a level, and autocast's two ends."""
    for module, enter, leave, kind in _LEVELS:
        if hasattr(module, enter) and hasattr(module, leave):
            _watch_level(session, patches, module, (enter, leave), kind)


def install_autocast(session: Session, patches: PatchBook) -> None:
    """Emits autocast.enter and autocast.exit, those of recomputes included."""
    enter, leave = autocast.__enter__, autocast.__exit__

    @functools.wraps(enter)
    def __enter__(self):
        result = enter(self)
        dtype = getattr(self, "fast_dtype", None)
        fields = {
            "device": str(self.device),
            "enabled": bool(self._enabled),
            "dtype": dtype_word(dtype) if dtype is not None else None,
            "cache": bool(self._cache_enabled),
        }
        session.emit("autocast.enter", fields)
        return result

    @functools.wraps(leave)
    def __exit__(self, *failure):
        session.emit("autocast.exit", {"device": str(self.device)})
        return leave(self, *failure)

    patches.set(autocast, "__enter__", __enter__)
    patches.set(autocast, "__exit__", __exit__)


def _watch_level(session, patches: PatchBook, module, ends: tuple[str, str], kind: str) -> None:
    enter, leave = (getattr(module, end) for end in ends)

    @functools.wraps(enter)
    def push(*args, **kwargs):
        level = enter(*args, **kwargs)
        session.emit("ft.push", {"level": level, "kind": kind})
        return level

    @functools.wraps(leave)
    def pop(*args, **kwargs):
        stack = transform_stack()
        session.emit("ft.pop", {"level": stack[-1][0] if stack else -1, "kind": kind})
        return leave(*args, **kwargs)

    patches.set(module, ends[0], push)
    patches.set(module, ends[1], pop)
