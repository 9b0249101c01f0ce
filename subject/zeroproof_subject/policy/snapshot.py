"""The values of some objects as text, and the objects set back to them."""

from __future__ import annotations

import collections
import json
import types
from typing import Any

PLAIN = (bool, int, float, str, type(None))
CONTAINERS = {cls.__name__: cls for cls in (list, tuple, set, frozenset, collections.deque)}


class Snapshots:
    """Copies the attributes of `roots` by value, with the containers in them and the objects whose
    class comes from `package`. Anything else (functions, tensors, locks) is kept by identity."""

    def __init__(self, roots: dict[str, Any], package: str = "") -> None:
        self._roots = roots
        self._names = {id(root): name for name, root in roots.items()}
        self._package = package
        self._kept: dict[str, Any] = {}
        self._tokens: dict[int, str] = {}

    def take(self) -> str:
        """Equal texts: equal values."""
        inside: dict[str, Any] = {}
        values = {name: self._attributes(root, inside) for name, root in self._roots.items()}
        return json.dumps({"roots": values, "inside": inside}, sort_keys=True)

    def restore(self, text: str) -> None:
        """Sets every object back to what it was when `take` gave this text."""
        document = json.loads(text)
        for name, values in document["roots"].items():
            self._set(self._roots[name], values)
        for token, values in document["inside"].items():
            self._set(self._kept[token], values)

    def _attributes(self, owner: Any, inside: dict[str, Any]) -> dict[str, Any]:
        return {name: self._encode(value, inside) for name, value in vars(owner).items()}

    def _set(self, owner: Any, values: dict[str, Any]) -> None:
        attributes = vars(owner)
        for name in attributes.keys() - values.keys():
            del attributes[name]
        attributes.update({name: self._decode(value) for name, value in values.items()})

    def _encode(self, value: Any, inside: dict[str, Any]) -> Any:
        if type(value) in PLAIN:
            return value
        if id(value) in self._names:
            return {"root": self._names[id(value)]}
        kind = type(value).__name__
        if CONTAINERS.get(kind) is type(value):
            items = [self._encode(item, inside) for item in value]
            return {kind: sorted(items, key=json.dumps) if "set" in kind else items}
        if type(value) is dict:
            return {
                "dict": [[self._encode(part, inside) for part in item] for item in value.items()]
            }
        return {"kept": self._token(value, inside)}

    def _decode(self, value: Any) -> Any:
        if type(value) in PLAIN:
            return value
        ((kind, content),) = value.items()
        if kind == "root":
            return self._roots[content]
        if kind == "kept":
            return self._kept[content]
        if kind == "dict":
            return {self._decode(key): self._decode(item) for key, item in content}
        return CONTAINERS[kind](self._decode(item) for item in content)

    def _token(self, value: Any, inside: dict[str, Any]) -> str:
        if isinstance(value, types.FunctionType) and value.__closure__:
            return self._token_of_closure(value, inside)
        if isinstance(value, types.MethodType):
            owner = json.dumps(self._encode(value.__self__, inside))
            return self._keep(f"{owner}.{value.__name__}", value)
        token = self._tokens.get(id(value))
        if token is None:
            token = self._tokens[id(value)] = f"{type(value).__name__} {len(self._tokens)}"
        self._keep(token, value)
        is_own = self._package and type(value).__module__.split(".")[0] == self._package
        if is_own and hasattr(value, "__dict__") and token not in inside:
            inside[token] = {}  # for an object that leads to itself
            inside[token] = self._attributes(value, inside)
        return token

    def _token_of_closure(self, function: types.FunctionType, inside: dict[str, Any]) -> str:
        """Two closures with equal code and equal contents do the same."""
        cells = [self._encode(cell.cell_contents, inside) for cell in function.__closure__ or ()]
        defaults = [self._encode(value, inside) for value in function.__defaults__ or ()]
        code = function.__code__
        place = f"{code.co_filename}:{code.co_firstlineno}"
        return self._keep(
            f"{function.__qualname__} {place} {json.dumps([cells, defaults])}", function
        )

    def _keep(self, token: str, value: Any) -> str:
        self._kept.setdefault(token, value)
        return token
