"""A user's engine: `package.module:make` (docs/how-to/hunt_an_engine.md)."""

from __future__ import annotations

import importlib

import torch

from zeroproof_subject import capability


class OwnEngine:
    """The same members as a module of this folder, of which `make` alone is the user's."""

    MISSING_IS_ZERO = False
    CASES_OF_A_GROUP = 100
    OPTIONS: dict = {}

    def __init__(self, name: str) -> None:
        module_name, _, function = name.partition(":")
        if not function:
            raise SystemExit(f"--engine {name}: give a known name, or package.module:make")
        self.name = name
        self.module = importlib.import_module(module_name)
        self.make = getattr(self.module, function)
        self.MISSING_IS_ZERO = getattr(self.module, "MISSING_IS_ZERO", False)

    def prepare(self) -> None:
        """The module is imported already."""

    def versions(self) -> dict[str, str]:
        """What findings depend on."""
        own = getattr(self.module, "__version__", None)
        return {"torch": torch.__version__, **({self.name: own} if own else {})}

    def capabilities(self, options: dict) -> dict:
        """The module's own document, or what plain training needs."""
        own = getattr(self.module, "capabilities", None)
        if own is not None:
            return own()
        return capability.document(self.name, self.versions(), capability.CONFIG, blocks=[])
