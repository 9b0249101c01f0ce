"""The autograd graph before a backward, and hooks that say in which order its nodes run."""

import torch
from .probes import is_transforming, node_seq


class _Nodes:
    """Nodes in the order in which they are found from the roots."""

    def __init__(self):
        self.records, self.functions = [], []
        self._ids, self._waiting = {}, []

    def add(self, function):
        """The id of a node; None for no node."""
        if function is None:
            return None
        if function not in self._ids:
            self._ids[function] = len(self.records)
            self.records.append({"id": len(self.records)})
            self.functions.append(function)
            self._waiting.append(function)
        return self._ids[function]

    def id_of(self, function):
        """The id of a known node."""
        return self._ids.get(function)

    def visit(self, names):
        """Fills all records; ids of leaves by the id of their tensor."""
        leaves = {}
        while self._waiting:
            function = self._waiting.pop()
            record = self.records[self._ids[function]]
            record.update(name=function.name(), seq=node_seq(function))
            leaf = getattr(function, "variable", None)
            if leaf is not None and record["name"].endswith("AccumulateGrad"):
                leaves[id(leaf)] = record["id"]
                record["param"] = names.get(id(leaf))
            record["next"] = [
                None if after is None else [self.add(after), slot]
                for after, slot in function.next_functions
            ]
        return leaves


def _node_of(tensor, transforming):
    """The node that made a tensor or an edge; that of a leaf is asked for."""
    if not isinstance(tensor, torch.Tensor):
        return tensor[0]
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    if transforming or not tensor.requires_grad:
        return None
    return torch.autograd.graph._get_grad_fn_or_grad_acc(tensor)


def _slot_of(tensor):
    return tensor.output_nr if isinstance(tensor, torch.Tensor) else tensor[1]


def _input_id(tensor, nodes, leaves):
    function = tensor.grad_fn if isinstance(tensor, torch.Tensor) else tensor[0]
    return leaves.get(id(tensor)) if function is None else nodes.id_of(function)


def snapshot(context, call, outputs, inputs, accumulates):
    """Writes the graph below `outputs`; handles of the hooks, and what has to live until the end.

    The AccumulateGrad of a leaf that is itself an output may exist only because it was asked for.
    """
    nodes, transforming = _Nodes(), is_transforming()
    roots = [[nodes.add(_node_of(one, transforming)), _slot_of(one)] for one in outputs]
    leaves = nodes.visit(context.names)
    record = {"rec": "graph", "call": call, "roots": roots, "accumulate": accumulates}
    record["nodes"] = nodes.records
    if inputs:
        record["inputs"] = [_input_id(one, nodes, leaves) for one in inputs]
    is_opaque = any(root is None for root, _ in roots)
    if is_opaque or any(node["seq"] is None for node in nodes.records):
        record["opaque"] = True
    context.trace.add(record)
    handles = [
        _watch(context, function, node, call)
        for function, node in zip(nodes.functions, nodes.records)
    ]
    kept = [
        nodes.functions[root]
        for (root, _), one in zip(roots, outputs)
        if root is not None and isinstance(one, torch.Tensor) and one.grad_fn is None
    ]
    return handles, kept


def _watch(context, function, node, call):
    def event(_):
        context.emit("node.exec", node=node["id"], name=node["name"], call=call)

    return function.register_prehook(event)
