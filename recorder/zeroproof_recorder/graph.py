"""The autograd graph just before a backward call, and the order in which its nodes then run."""

from __future__ import annotations

from typing import Any, Optional

import torch

from .guard import Observer
from .names import NameBook
from .session import Session, transform_on_top


class GraphSnapshot:
    """Writes one graph record; its prehooks on the nodes write node.exec until `release`.

    The nodes are held until then, which changes no order: they would live as long as their graph.
    """

    def __init__(self, session: Session, names: NameBook, call: int, observer: Observer):
        self._session = session
        self._observer = observer
        self._names = names
        self._call = call
        self._index: dict[Any, int] = {}
        self._nodes: list[Any] = []
        self._leaves: dict[int, int] = {}
        self._handles: list[Any] = []

    def take(self, outputs, inputs, accumulates: Optional[bool]) -> None:
        """Walks from the outputs, writes the record and hooks the nodes."""
        roots = [self._edge(*_root_of(output)) for output in outputs]
        records = []
        done = 0
        while done < len(self._nodes):  # `_edge` appends what it meets
            records.append(self._node_record(done))
            done += 1
        graph = {
            "rec": "graph",
            "call": self._call,
            "roots": roots,
            "accumulate": bool(accumulates),
            "nodes": records,
        }
        if inputs:
            graph["inputs"] = [self._input(tensor) for tensor in inputs]
        if any(root is None or root[0] is None for root in roots):
            graph["opaque"] = True
        self._hook_nodes(graph)
        self._session.add(graph)

    def release(self) -> None:
        """Takes the prehooks away and lets the nodes go."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._nodes.clear()
        self._index.clear()

    def _edge(self, node, slot: int) -> list:
        if node is None:
            return [None, slot]
        if node not in self._index:
            self._index[node] = len(self._nodes)
            self._nodes.append(node)
        return [self._index[node], slot]

    def _node_record(self, index: int) -> dict[str, Any]:
        node = self._nodes[index]
        sequence = node._sequence_nr()
        record = {
            "id": index,
            "name": node.name(),
            "seq": -1 if sequence >= 1 << 63 else sequence,
        }
        leaf = getattr(node, "variable", None) if "AccumulateGrad" in record["name"] else None
        if leaf is not None:
            self._leaves[id(leaf)] = index
            record["param"] = self._names.known_param(leaf)
        record["next"] = [
            None if following is None else self._edge(following, slot)
            for following, slot in node.next_functions
        ]
        return record

    def _input(self, tensor) -> Optional[int]:
        if not isinstance(tensor, torch.Tensor):
            return self._index.get(tensor[0])
        if tensor.grad_fn is not None:
            return self._index.get(tensor.grad_fn)
        return self._leaves.get(id(tensor))

    def _hook_nodes(self, graph: dict[str, Any]) -> None:
        emit = self._session.emit
        for index, node in enumerate(self._nodes):
            fields = {"node": index, "name": graph["nodes"][index]["name"], "call": self._call}
            runs = self._observer.hook(lambda _, fields=fields: emit("node.exec", fields))
            try:
                self._handles.append(node.register_prehook(runs))
            except RuntimeError:  # a node that takes no Python hook
                graph["opaque"] = True


def _root_of(output) -> tuple[Any, int]:
    """The node and slot in which a backward begins; (None, slot) where a transform hides it."""
    if not isinstance(output, torch.Tensor):
        return output[0], output[1]
    if output.grad_fn is not None:
        return output.grad_fn, output.output_nr
    if transform_on_top() is not None or not output.requires_grad:
        return None, output.output_nr
    return torch.autograd.graph._get_grad_fn_or_grad_acc(output), output.output_nr
