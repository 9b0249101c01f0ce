"""Hashes and norms: what they say, and that taking them does not change the tensors."""

import math
import unittest

import models
import support
import torch
from job import batch

import zeroproof_recorder
from zeroproof_recorder import fingerprints
from zeroproof_recorder.fingerprints import CHUNK, Fingerprints


def of(*tensors):
    """Hash and norm of each."""
    taken = Fingerprints()
    taken.add(tensors)
    return taken.fetch()


def hashes(*tensors):
    return [bits for bits, _ in of(*tensors)]


def some(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def changed(tensor, place):
    """The lowest bit of one byte is another one."""
    copy = tensor.clone()
    copy.view(-1).view(torch.uint8)[place] ^= 1
    return copy


class FingerprintTest(unittest.TestCase):
    def test_equal_values_have_equal_hashes_however_they_lie(self):
        value = some(30, 7)
        apart = torch.zeros(30, 9)[:, 1:8].copy_(value)
        odd = torch.zeros(211)[1:].copy_(value.view(-1)).view(30, 7)  # begins inside of a word
        found = hashes(value, value.clone(), value.t().contiguous().t(), apart, odd)
        self.assertEqual(set(found), {found[0]})
        self.assertRegex(found[0], "^[0-9a-f]{16}$")

    def test_a_bit_a_place_or_a_size_that_differs_is_another_hash(self):
        value = some(2 * CHUNK + 5)  # of two chunks of words, and a rest
        places = [0, 3, 4, 8 * CHUNK - 1, 8 * CHUNK, value.numel() * 4 - 1]
        different = [value, value.flip(0), value[:-1], *(changed(value, at) for at in places)]
        different += [torch.zeros(size) for size in (1, 2, 3)]
        found = hashes(*different)
        self.assertEqual(len(set(found)), len(different))

    def test_tensors_that_a_device_hashes_together_have_their_own_hashes(self):
        sizes = [1, 8, fingerprints.SMALL, *([fingerprints.SMALL - 1] * 3)]
        words = [torch.full((size,), -size, dtype=torch.int64) for size in sizes]
        weights = fingerprints.Weights().on(torch.device("cpu"))
        found = []
        for batch_of in fingerprints._batches(list(enumerate(words))):
            self.assertLessEqual(sum(part.numel() for _, part in batch_of), 2 * fingerprints.SMALL)
            found += fingerprints._sums([part for _, part in batch_of], weights)
        alone = [fingerprints._sum(part, 1) for part in words]
        self.assertEqual(list(map(int, found)), list(map(int, alone)))

    def test_every_kind_of_tensor(self):
        value = some(6, 5)
        kinds = ("float64", "bfloat16", "float16", "complex64", "complex128")
        for kind in kinds:
            with self.subTest(kind):
                tensor = value.to(getattr(torch, kind))
                ((bits, norm),) = of(tensor)
                self.assertNotEqual(bits, hashes(changed(tensor, 9))[0])
                self.assertAlmostEqual(norm, value.norm().item(), delta=0.05)
        plain = [torch.ones(3, dtype=torch.int8), torch.tensor([True, False]), torch.zeros(0)]
        found = of(*plain)
        self.assertEqual([norm for _, norm in found], [None, None, 0.0])
        self.assertEqual(len({bits for bits, _ in found}), 3)
        unreadable = [None, value.to_sparse(), torch.empty(3, device="meta")]
        self.assertEqual(of(*unreadable), [(None, None)] * 3)

    def test_a_norm_of_narrow_numbers_is_wide(self):
        ((_, norm),) = of(torch.full((10_000,), 300.0, dtype=torch.float16))
        self.assertAlmostEqual(norm, 30_000.0, delta=30)
        ((_, norm),) = of(torch.tensor([1.0, math.nan]))
        self.assertTrue(math.isnan(norm))

    def test_nothing_of_a_tensor_changes(self):
        with torch.autograd.set_detect_anomaly(True):
            leaf = some(40, 3).requires_grad_()
            product = leaf * leaf  # autograd has saved it
            before = (leaf._version, torch.get_rng_state())
            of(leaf, product)
            product.sum().backward()
        self.assertEqual(leaf._version, before[0])
        self.assertTrue(torch.equal(torch.get_rng_state(), before[1]))
        self.assertTrue(torch.equal(leaf.grad, 2 * leaf))


class NumbersTest(support.RecordingTest):
    def record(self, body, **options):
        with zeroproof_recorder.record(out=self.folder, quiet=True, numbers=True, **options):
            body()
        return support.read(self.trace())

    def train(self, steps=2, spoil=None):
        torch.manual_seed(3)
        model = models.Mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(steps):
            optimizer.zero_grad()
            model(batch(step)).backward()
            if spoil is not None:
                spoil(model)
            optimizer.step()
        return model

    def test_records_stand_around_their_steps(self):
        made = []
        records = self.record(lambda: made.append(self.train()))
        kinds = [(r["rec"], r.get("when"), r.get("step")) for r in records]
        kinds = [k if k[0] == "numbers" else r.get("k") for k, r in zip(kinds, records)]
        kinds = [kind for kind in kinds if kind == "opt.step" or isinstance(kind, tuple)]
        before, after = ([("numbers", f"{w}_step", n) for n in (0, 1)] for w in ("before", "after"))
        expected = [before[0], "opt.step", after[0], before[1], "opt.step", after[1]]
        self.assertEqual(kinds, expected)
        found = [r for r in records if r["rec"] == "numbers"]
        self.assertEqual([r["optimizer"] for r in found], [0] * 4)
        self.assertEqual([("grad_hash" in r) for r in found], [True, False, True, False])
        self.assertEqual(found[1]["param_hash"], found[2]["param_hash"])
        self.assertNotEqual(found[2]["param_hash"], found[3]["param_hash"])
        params = list(made[0].parameters())
        self.assertEqual(found[3]["param_hash"], hashes(*params))
        self.assertEqual(found[2]["grad_hash"], hashes(*(p.grad for p in params)))
        self.assertTrue(all(r["bad"] == [] for r in found))
        self.assertTrue(all("partial_grads" not in r for r in found))

    def test_the_place_of_an_overflow_and_of_a_missing_gradient(self):
        def spoil(model):
            model.l2.weight.grad[0, 0] = math.inf
            model.l1.bias.grad = None

        records = self.record(lambda: self.train(1, spoil))
        before, after = (r for r in records if r["rec"] == "numbers")
        self.assertEqual((before["bad"], after["bad"]), (["l2.weight"], ["l2.weight"]))
        self.assertEqual((before["grad_hash"][1], before["grad_norm"][1]), (None, None))
        self.assertEqual((before["grad_norm"][2], after["param_norm"][2]), ("inf", "inf"))

    def test_the_gradients_of_a_closure_come_after_the_step(self):
        model = models.Mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def closure():
            loss = model(batch(0))
            loss.backward()
            return loss

        records = self.record(lambda: optimizer.step(closure))
        before, after = (r for r in records if r["rec"] == "numbers")
        self.assertNotIn("grad_hash", before)
        self.assertEqual(after["grad_hash"], hashes(*(p.grad for p in model.parameters())))

    def test_training_is_the_same(self):
        results = []
        for is_recorded in (False, True):
            if is_recorded:
                self.record(lambda: results.append(self.train(3)))
            else:
                results.append(self.train(3))
        pairs = zip(*(model.parameters() for model in results))
        self.assertTrue(all(torch.equal(one, other) for one, other in pairs))

    def test_only_the_recorded_steps_have_numbers(self):
        records = self.record(lambda: self.train(4), steps="1:3")
        found = [(r["step"], r["when"]) for r in records if r["rec"] == "numbers"]
        words = ("before_step", "after_step")
        self.assertEqual(found, [(step, when) for step in (1, 2) for when in words])

    def test_without_being_asked_for_there_are_none(self):
        with zeroproof_recorder.record(out=self.folder, quiet=True):
            self.train(1)
        self.assertNotIn("numbers", {r["rec"] for r in support.read(self.trace())})


if __name__ == "__main__":
    unittest.main()
