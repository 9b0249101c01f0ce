"""Acts when a module is imported for the first time."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

from .calls import Call, Use, observed
from .guard import Observer
from .patches import PatchBook


class ImportWatch:
    """A finder that never finds a module itself: it only wraps the loader of one module."""

    def __init__(self, name: str, observer: Observer, on_import: Callable[[], None]):
        self._name = name
        self._observer = observer
        self._on_import = observer.guarded(on_import)
        self._use = Use()
        self._is_looking = False

    def install(self, patches: PatchBook) -> None:
        """Calls back at once if the module is there already."""
        if self._name in sys.modules:
            self._on_import()
            return
        sys.meta_path.insert(0, self)
        patches.then(self._remove)

    def find_spec(self, name: str, *_path_and_target: Any) -> Any:
        """Finds as everybody else does, and adds the call."""
        if name != self._name or self._is_looking:
            return None
        return self._observer.guarded(self._find)()

    def _find(self) -> Any:
        self._is_looking = True
        try:
            spec = importlib.util.find_spec(self._name)
        finally:
            self._is_looking = False
        if spec is None or spec.loader is None:
            return None
        loader = spec.loader
        loader.exec_module = observed(
            loader.exec_module, self._observer, self._use, after=self._executed
        )
        return spec

    def _executed(self, call: Call) -> None:
        self._remove()
        if call.failure is None:
            self._on_import()

    def _remove(self) -> None:
        self._use.is_in_use = False
        if self in sys.meta_path:
            sys.meta_path.remove(self)
