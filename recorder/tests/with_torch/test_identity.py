"""The recorder changes neither numbers nor the order of hooks, and removes all that it installs."""

import models
import support
import torch
import torch.utils.checkpoint
from job import batch

import zeroproof_recorder
from zeroproof_recorder.options import Detail

MODELS = {
    "mlp": models.Mlp,
    "reentrant": lambda: models.Checkpointed(True),
    "nonreentrant": lambda: models.Checkpointed(False),
    "retain": models.TwoHeads,
    "tied": models.Tied,
    "undefined": models.UndefinedGradient,
    "tiled": models.Tiled,
    "frozen": lambda: models.Checkpointed(True, True),
}


def watch(model, order):
    """A user's own hooks, of every kind, that write down that they ran."""
    for name, param in model.named_parameters():
        if param.requires_grad:
            param.register_hook(lambda _, name=name: order.append(f"tensor {name}"))
            param.register_post_accumulate_grad_hook(
                lambda _, name=name: order.append(f"accumulated {name}")
            )
    for name, module in model.named_modules():
        module.register_forward_pre_hook(lambda *_, name=name: order.append(f"forward {name}"))
        module.register_forward_hook(lambda *_, name=name: order.append(f"forwarded {name}"))


def queue(order, label):
    """A final callback of the current backward, as engines queue one."""
    torch.autograd.Variable._execution_engine.queue_callback(lambda: order.append(label))


def train(model, order, steps=3):
    """Three steps; losses, gradients and parameters as bytes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    numbers = []
    for step in range(steps):
        optimizer.zero_grad()
        losses = model(batch(step))
        losses = losses if isinstance(losses, tuple) else (losses,)
        for number, loss in enumerate(losses, 1):
            loss.register_hook(lambda _, step=step: queue(order, f"callback {step}"))
            loss.backward(retain_graph=number < len(losses))
        optimizer.step()
        for tensor in [*losses, *(p.grad for p in model.parameters()), *model.parameters()]:
            numbers.append(None if tensor is None else tensor.detach().numpy().tobytes())
    return numbers


def surroundings():
    """Everything in PyTorch that the recorder replaces or adds to."""
    from torch.nn.modules import module
    from torch.optim import optimizer

    c10d = torch.distributed.distributed_c10d
    return [
        torch.autograd._engine_run_backward,
        torch.autograd.graph._engine_run_backward,
        torch.autograd.Variable._execution_engine,
        torch.utils.checkpoint.CheckpointFunction.forward,
        {name: part for name, part in vars(torch.utils.checkpoint).items() if "generator" in name},
        torch.optim.Optimizer.zero_grad,
        torch.amp.autocast.__enter__,
        torch._functorch.eager_transforms._grad_increment_nesting,
        c10d.Work.wait,
        c10d.ProcessGroup.allreduce,
        dict(module._global_forward_pre_hooks),
        dict(module._global_forward_hooks),
        dict(optimizer._global_optimizer_pre_hooks),
        dict(optimizer._global_optimizer_post_hooks),
        torch._C._dispatch_has_kernel_for_dispatch_key("c10d::allreduce_", "BackendSelect"),
    ]


class IdentityTest(support.RecordingTest):
    def run_both(self, make, detail):
        results = []
        for is_recorded in (False, True):
            torch.manual_seed(7)
            model, order = make(), []
            watch(model, order)
            if is_recorded:
                with zeroproof_recorder.record(model, out=self.folder, detail=detail, quiet=True):
                    numbers = train(model, order)
            else:
                numbers = train(model, order)
            results.append((numbers, order))
        return results

    def test_numbers_are_bitwise_equal_and_hooks_run_in_the_same_order(self):
        for name, make in MODELS.items():
            for detail in Detail:
                with self.subTest(model=name, detail=detail):
                    (plain, plain_order), (recorded, order) = self.run_both(make, detail)
                    self.assertEqual(plain, recorded)
                    self.assertEqual(plain_order, order)
                    self.assertGreater(len(order), 30)

    def test_everything_is_put_back(self):
        before = surroundings()
        model = models.Checkpointed(True)
        with zeroproof_recorder.record(model, out=self.folder, detail="full", quiet=True):
            self.assertNotEqual(surroundings(), before)
            train(model, [])
        self.assertEqual(surroundings(), before)
        for param in model.parameters():
            self.assertFalse(param._post_accumulate_grad_hooks)

    def test_everything_is_put_back_after_an_exception(self):
        before = surroundings()
        with self.assertRaises(ValueError), zeroproof_recorder.record(out=self.folder, quiet=True):
            raise ValueError("the user's own")
        self.assertEqual(surroundings(), before)

    def test_the_last_recorded_step_disturbs_no_hook_of_the_user(self):
        from torch.optim.optimizer import register_optimizer_step_post_hook

        model, seen = models.Mlp(), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with zeroproof_recorder.record(model, out=self.folder, steps="0:1", quiet=True):
            handle = register_optimizer_step_post_hook(lambda *_: seen.append("stepped"))
            for step in range(2):
                model(batch(step)).backward()
                optimizer.step()
            records = support.read(self.trace())
        handle.remove()
        self.assertEqual(seen, ["stepped"] * 2)
        self.assertEqual(records[-1]["rec"], "end")

    def test_between_the_recorded_steps_nothing_is_hooked(self):
        model, seen = models.Mlp(), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with zeroproof_recorder.record(model, out=self.folder, steps="1,3", quiet=True):
            for step in range(5):
                seen.append(bool(model.l1.weight._post_accumulate_grad_hooks))
                optimizer.zero_grad()
                model(batch(step)).backward()
                optimizer.step()
        self.assertEqual(seen, [False, True, False, True, False])
        marks = [e["label"] for e in support.events(self.trace()) if e["k"] == "mark"]
        self.assertEqual(marks, ["recorded_step:1", "recorded_step:3"])


if __name__ == "__main__":
    support.unittest.main()
