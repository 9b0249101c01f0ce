"""What wraps a model, as the trace says it; in one process that is a world of its own."""

import functools
import tempfile
import unittest
from unittest import mock

import models
import support
import torch
import torch.distributed as dist
from job import batch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import zeroproof_recorder
from zeroproof_recorder import wrappers
from zeroproof_recorder.names import NameBook

HAS_FSDP2_ON_CPU = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 7)


def halve(_state, bucket):
    future = torch.futures.Future()
    future.set_result(bucket.buffer() / 2)
    return future


class HandMade(nn.Module):
    """Somebody's own data parallelism."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        for param in module.parameters():
            param.register_post_accumulate_grad_hook(functools.partial(self.reduce, 1))

    def reduce(self, _times, param):
        dist.all_reduce(param.grad)

    def forward(self, *inputs):
        return self.module(*inputs)


class Closes(HandMade):
    """The same by closures."""

    def __init__(self, module):
        nn.Module.__init__(self)
        self.module = module
        for param in module.parameters():
            param.register_post_accumulate_grad_hook(lambda grad: self.reduce(1, grad))


class Observed(nn.Module):
    """A user's own hook that belongs to no wrapper."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        for param in module.parameters():
            param.register_hook(lambda grad: grad)

    def forward(self, *inputs):
        return self.module(*inputs)


def fake(module, name):
    """A class of a package that is not installed."""
    made = type(name, (Observed,), {"__module__": module})
    return made(models.Mlp())


def ddp(**options):
    return DistributedDataParallel(models.Mlp(), **options)


def ignoring():
    model = models.Mlp()
    model._ddp_params_and_buffers_to_ignore = ["l1.bias"]
    return DistributedDataParallel(model)


def inside():
    class System(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = ddp()

        def forward(self, x):
            return self.net(x)

    return System()


def fsdp1():
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(models.Mlp(), device_id=torch.device("cpu"))


def fsdp2():
    from torch.distributed.fsdp import fully_shard

    model = models.Mlp()
    for part in (model.l1, model.l2, model):
        fully_shard(part, mesh=_mesh("dp"))
    return model


def tensor_parallel():
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    return parallelize_module(models.Mlp(), _mesh("tp"), {"l1": ColwiseParallel()})


def _mesh(name):
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", (1,), mesh_dim_names=(name,))


# What is trained, and what its record has to say.
WRAPPED = [
    (ddp, {"kind": "ddp", "class": "DistributedDataParallel", "group": "world", "size": 1}),
    (ddp, {"static_graph": False, "find_unused": False, "trainable": 4, "frozen": 0}),
    (functools.partial(ddp, static_graph=True), {"static_graph": True}),
    (functools.partial(ddp, find_unused_parameters=True), {"find_unused": True}),
    (ignoring, {"ignored": ["l1.bias"]}),
    (inside, {"kind": "ddp", "understood": True}),
    (fsdp2, {"kind": "fsdp2", "understood": True, "size": 1}),
    (tensor_parallel, {"kind": "dtensor", "class": "DTensor", "understood": False, "size": 1}),
    (fsdp1, {"kind": "fsdp1", "understood": False}),
    (lambda: HandMade(models.Mlp()), {"kind": "unknown", "class": "HandMade"}),
    (lambda: Closes(models.Mlp()), {"kind": "unknown", "understood": False}),
    (lambda: fake("megatron.core.distributed.ddp", "DistributedDataParallel"), {"kind": "unknown"}),
    (lambda: fake("fairscale.nn.data_parallel", "ShardedDataParallel"), {"kind": "unknown"}),
    (lambda: fake("my.own", "DistributedDataParallel"), None),
    (models.Mlp, None),
]


class WrapperTest(support.RecordingTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        where = f"file://{folder.name}/store"
        dist.init_process_group("gloo", init_method=where, rank=0, world_size=1)
        cls.addClassCleanup(dist.destroy_process_group)

    def train(self, model, steps=1, between=lambda: None):
        """All records of a training; gloo has no device for FSDP1's streams on a CPU."""
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with zeroproof_recorder.record(out=self.folder, quiet=True):
            for step in range(steps):
                model(batch(step)).backward()
                optimizer.step()
                between()
        records = support.read(self.trace())
        self.trace().unlink()
        return records

    def test_what_wraps_a_model(self):
        for make, expected in WRAPPED:
            if make is fsdp2 and not HAS_FSDP2_ON_CPU:
                continue
            model = make()
            with self.subTest(model=type(model).__name__, expected=expected):
                with mock.patch.object(wrappers, "_is_distributed", lambda: True):
                    records = self.train(model)
                found = [r for r in records if r["rec"] == "wrapper"]
                self.assertEqual(len(found), 0 if expected is None else 1)
                kind = "plain" if expected is None else found[0]["kind"]
                self.assertEqual(records[0]["producer"]["framework"], kind)
                for word, value in (expected or {}).items():
                    self.assertEqual(found[0].get(word), value, word)
                notes = [r for r in records if r["rec"] == "note" and r.get("observer") == "wrapper"]
                understood = expected is None or found[0]["understood"]
                self.assertEqual(len(notes), 0 if understood else 1)
                self.assertEqual("reason" in (found or [{}])[0], not understood)

    def test_a_fact_that_changes_is_told_again(self):
        model = ddp()

        def change():
            if not model._comm_hooks:
                model.register_comm_hook(None, halve)
            else:
                model.module.l1.weight.requires_grad_(False)

        records = self.train(model, steps=3, between=change)
        found = [r for r in records if r["rec"] == "wrapper"]
        self.assertEqual([r.get("comm_hook") for r in found], [None, "halve", "halve"])
        self.assertEqual([r["frozen"] for r in found], [0, 0, 1])

    def test_a_built_in_hook_has_a_name(self):
        model = ddp()
        model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
        (found,) = (r for r in self.train(model) if r["rec"] == "wrapper")
        self.assertIn("FP16_COMPRESS", found["comm_hook"])

    @unittest.skipUnless(HAS_FSDP2_ON_CPU, "this PyTorch's FSDP2 needs CUDA")
    def test_a_backward_of_fsdp2_that_does_not_reduce_is_marked(self):
        model = fsdp2()
        model.set_requires_gradient_sync(False)
        records = self.train(model, 2, lambda: model.set_requires_gradient_sync(True))
        kinds = [r.get("label") or r["k"] for r in records if r.get("k") in ("mark", "gt.begin")]
        begins = [at for at, kind in enumerate(kinds) if kind == "gt.begin"]
        self.assertEqual(kinds[begins[0] - 1], "fsdp2.no_sync")
        self.assertEqual(kinds.count("fsdp2.no_sync"), 1)

    @unittest.skipUnless(HAS_FSDP2_ON_CPU, "this PyTorch's FSDP2 needs CUDA")
    def test_a_parameter_of_fsdp2_has_one_name_in_all_its_forms(self):
        model = fsdp2()
        records = self.train(model, steps=2)
        params = [r for r in records if r["rec"] == "param"]
        self.assertEqual(len(params), 4)
        self.assertTrue(all(r["sharded"] for r in params))
        book = NameBook()
        self.assertEqual(len(book.add_model(model, 0)), 4)
        model.l1.unshard()  # what is shown as a parameter is another tensor now
        self.assertEqual(book.add_model(model, 0), [])
        self.assertEqual(book.known_param(model.l1.weight), "l1.weight")


if __name__ == "__main__":
    unittest.main()
