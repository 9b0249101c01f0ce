"""Records beside the events: optimizers, names, and what changes in a model."""

import contextlib
import copy
import unittest
from unittest import mock

import models
import support
import torch
from job import batch
from torch import nn

import zeroproof_recorder


def adapter(model):
    """Puts a new trainable layer around an old one, as peft does after a model was wrapped."""
    model.l2 = nn.Sequential(model.l2, nn.Linear(3, 3))


def replacement(model):
    """Another tensor takes the place of a weight, which the optimizer does not come to know."""
    model.l1.weight = nn.Parameter(torch.ones(6, 4))


# What changes a model, the parameters that are declared for it, how many the optimizer lost.
REPLACED = [
    (adapter, ["l2.1.weight", "l2.1.bias"], 0),
    (replacement, ["l1.weight"], 1),
]


class FactsTest(support.RecordingTest):
    def record(self, body, model=None, **options):
        """The records that a body leaves, which may be given the model to record."""
        with zeroproof_recorder.record(model, out=self.folder, quiet=True, **options) as recording:
            body()
        self.recording = recording
        return support.read(self.trace())

    def of(self, records, rec):
        return [record for record in records if record["rec"] == rec]

    def events(self, records, kind):
        return [r for r in records if r.get("k") == kind]

    def marks(self, records):
        found = self.events(records, "mark")
        return [(m["label"], m.get("param")) for m in found if "recorded_step" not in m["label"]]


class OptimizerTest(FactsTest):
    def test_a_step_names_its_optimizer_which_was_declared_before(self):
        model = models.Mlp()
        model.l1.weight.requires_grad_(False)
        stranger = nn.Parameter(torch.zeros(3))
        optimizer = torch.optim.SGD([*model.parameters(), stranger], lr=0.1)

        def body():
            for step in range(2):
                model(batch(step)).backward()
                optimizer.step()
            optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
            optimizer.step()

        records = self.record(body)
        told = self.of(records, "optimizer")
        names = ["l1.weight", "l1.bias", "l2.weight", "l2.bias"]
        self.assertEqual([r["params"] for r in told], [names, names])
        self.assertEqual([(r["id"], r["class"], r["frozen"]) for r in told], [(0, "SGD", 1)] * 2)
        self.assertEqual([r["unknown"] for r in told], [1, 2])
        steps = self.events(records, "opt.step")
        self.assertEqual([(s["optimizer"], s["grads"]) for s in steps], [(0, 3)] * 3)
        self.assertTrue(all("closure" not in step for step in steps))
        self.assertLess(records.index(told[0]), records.index(steps[0]))
        self.assertLess(records.index(told[1]), records.index(steps[2]))

    def test_a_closure_is_part_of_the_step(self):
        kinds = ("opt.zero_grad", "gt.begin", "opt.step")
        for make, backwards in ((torch.optim.SGD, 1), (torch.optim.LBFGS, 3)):
            with self.subTest(optimizer=make.__name__):
                model = models.Mlp()
                more = {"max_iter": 3, "tolerance_change": 0} if backwards > 1 else {}
                optimizer = make(model.parameters(), lr=0.01, **more)

                def closure(model=model, optimizer=optimizer):
                    optimizer.zero_grad()
                    loss = model(batch(0))
                    loss.backward()
                    return loss

                records = self.record(lambda: optimizer.step(closure))
                found = [r["k"] for r in records if r.get("k") in kinds]
                self.assertEqual(found, ["opt.zero_grad", "gt.begin"] * backwards + ["opt.step"])
                (step,) = self.events(records, "opt.step")
                self.assertEqual((step["closure"], step["grads"]), (True, 4))
                self.trace().unlink()

    def test_a_step_that_a_closure_ends_is_none(self):
        optimizer = torch.optim.SGD(models.Mlp().parameters(), lr=0.1)

        def body():
            for closure in (mock.Mock(side_effect=ValueError), lambda: None):
                with contextlib.suppress(ValueError):
                    optimizer.step(closure)

        self.assertEqual(len(self.events(self.record(body), "opt.step")), 1)

    def test_an_optimizer_inside_another_is_no_step_of_its_own(self):
        class Outer(torch.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {})
                self.inner = torch.optim.SGD(self.param_groups[0]["params"], lr=0.1)

            def step(self, closure=None):
                self.inner.step()

        model = models.Mlp()
        outer, other = Outer(model.l1.parameters()), torch.optim.SGD(model.l2.parameters(), lr=0.1)

        def body():
            model(batch(0)).backward()
            outer.step()
            other.step(lambda: outer.step())

        steps = self.events(self.record(body), "opt.step")
        self.assertEqual([s["optimizer"] for s in steps], [0, 0, 1])

    def test_a_compiled_step_is_said_not_to_be_seen(self):
        self.addCleanup(torch._dynamo.reset)
        self.addCleanup(torch._dynamo.utils.counters.clear)
        model = models.Mlp()
        optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))
        step = torch.compile(optimizer.step, backend="eager")

        def body():
            for number in range(4):
                model(batch(number)).backward()
                step()
                optimizer.zero_grad()

        records = self.record(body)
        notes = [r for r in self.of(records, "note") if r.get("lost") == ["opt.step"]]
        seen = len(self.events(records, "opt.step"))
        self.assertEqual(len(notes), 0 if seen else 1)
        self.assertIn(seen, (0, 4))

    def test_a_rate_in_a_tensor_is_told(self):
        model = models.Mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.5))
        (step,) = self.events(self.record(optimizer.step), "opt.step")
        self.assertEqual(step["lr"], [0.5])

    def test_zero_grad_of_a_recorded_model_is_seen(self):
        model, other = models.Mlp(), nn.Linear(2, 2)

        def body():
            model(batch(0)).backward()
            model.zero_grad()
            other.zero_grad()

        self.assertEqual(len(self.events(self.record(body), "opt.zero_grad")), 1)


def zero_in_place(model):
    for param in model.parameters():
        param.grad.zero_()


def zero_data(model):
    for param in model.parameters():
        param.grad.data.zero_()


# How gradients of a step end, and whether the next backward adds to them.
CLEARED = [
    (lambda model: None, True),
    (zero_in_place, False),
    (zero_data, False),
    (lambda model: model.zero_grad(), False),
    (lambda model: model.zero_grad(set_to_none=False), False),
    (lambda model: [setattr(p, "grad", None) for p in model.parameters()], False),
]


class ChangesTest(FactsTest):
    def test_gradients_that_a_step_has_used_and_the_next_backward_adds_to(self):
        for number, (clear, is_kept) in enumerate(CLEARED):
            with self.subTest(number):
                model = models.Mlp()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

                def body(model=model, optimizer=optimizer, clear=clear):
                    for step in range(4):  # accumulates over two backwards
                        model(batch(step)).backward()
                        if step % 2:
                            optimizer.step()
                            clear(model)

                expected = [("gradients_kept:4", None)] if is_kept else []
                self.assertEqual(self.marks(self.record(body)), expected)
                self.trace().unlink()

    def test_gradients_of_another_optimizer_are_not_those_of_a_step(self):
        model = models.Mlp()
        often = torch.optim.SGD(model.l1.parameters(), lr=0.1)

        def body():
            for step in range(3):
                model(batch(step)).backward()
                often.step()
                often.zero_grad()

        self.assertEqual(self.marks(self.record(body)), [])

    def test_requires_grad_that_changes(self):
        model = models.Mlp()
        model.l1.requires_grad_(False)

        def body():
            model(batch(0)).backward()
            model.l1.weight.requires_grad_(True)
            model.l2.bias.requires_grad_(False)
            model(batch(1)).backward()
            model(batch(2)).backward()

        records = self.record(body)
        expected = [("requires_grad:true", "l1.weight"), ("requires_grad:false", "l2.bias")]
        self.assertEqual(self.marks(records), expected)
        accumulated = support.words(self.of(records, "ev"), "param.post_acc")
        self.assertEqual(accumulated.count("post_acc l1.weight"), 2)

    def test_requires_grad_that_changes_between_recorded_stretches(self):
        model = models.Mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def body():
            for step in range(3):
                model.l1.weight.requires_grad_(step == 0)
                model(batch(step)).backward()
                optimizer.step()
                optimizer.zero_grad()

        records = self.record(body, model, steps="0:1,2:")
        self.assertEqual(self.marks(records), [("requires_grad:false", "l1.weight")])

    def test_a_parameter_that_is_new_or_takes_the_place_of_another(self):
        for change, names, unknown in REPLACED:
            with self.subTest(change=change.__name__):
                model = models.Mlp()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

                def body(model=model, optimizer=optimizer, change=change):
                    model(batch(0)).backward()
                    change(model)
                    model(batch(1)).backward()
                    optimizer.step()

                records = self.record(body)
                told = [record["name"] for record in self.of(records, "param")]
                self.assertEqual(told[4:], names)
                accumulated = support.words(self.of(records, "ev"), "param.post_acc")[4:]
                for name in names:
                    self.assertIn(f"post_acc {name}", accumulated)
                (held,) = self.of(records, "optimizer")
                self.assertEqual(held["unknown"], unknown)
                self.trace().unlink()


class NamesTest(FactsTest):
    def test_a_frozen_model_has_names_and_does_not_take_those_of_the_one_that_trains(self):
        policy = models.Mlp(has_loss=False)
        reference = copy.deepcopy(policy).requires_grad_(False)

        def body():
            with torch.no_grad():
                target = reference(batch(0))
            (policy(batch(0)) - target).pow(2).mean().backward()

        records = self.record(body)
        names = [record["name"] for record in self.of(records, "param")]
        layers = ["l1.weight", "l1.bias", "l2.weight", "l2.bias"]
        self.assertEqual(names, [f"model0.{name}" for name in layers] + layers)
        trained = {r["param"] for r in records if r.get("k") == "param.post_acc"}
        self.assertEqual(trained, set(layers))

    def test_two_unknown_tensors_are_two(self):
        from zeroproof_recorder.names import NameBook

        book, declared = NameBook(), []
        book.declare = declared.append
        first, second = nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(2, 3))
        names = [book.param(tensor) for tensor in (first, second, first)]
        self.assertEqual(names, ["unnamed0[2, 3]", "unnamed1[2, 3]", "unnamed0[2, 3]"])
        self.assertEqual([record["name"] for record in declared], names[:2])

    def test_a_name_is_not_given_to_what_happens_to_get_an_address_again(self):
        from zeroproof_recorder.names import NameBook

        book, param = NameBook(), nn.Parameter(torch.zeros(1))
        key = id(param)
        book.param(param)
        del param
        self.assertNotIn(key, book._params)


if __name__ == "__main__":
    unittest.main()
