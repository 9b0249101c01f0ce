"""Acts when a module is imported for the first time."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable

from .patches import PatchBook


class ImportWatch:
    """A finder that finds nothing itself: it only wraps the loader of one module."""

    def __init__(self, name: str, on_import: Callable[[], None]):
        self._name = name
        self._on_import = on_import
        self._is_looking = False

    def install(self, patches: PatchBook) -> None:
        """Calls back at once if the module is there already."""
        if self._name in sys.modules:
            self._on_import()
            return
        sys.meta_path.insert(0, self)
        patches.then(self._remove)

    def find_spec(self, name, path=None, target=None):
        """Finds as everybody else does, and adds the call."""
        if name != self._name or self._is_looking:
            return None
        self._is_looking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_looking = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self._remove()
            self._on_import()

        spec.loader.exec_module = exec_module
        return spec

    def _remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
