"""What is recorded of plain PyTorch, and how misuse is answered."""

import models
import support
import torch
from job import batch

import zeroproof_recorder
from zeroproof_recorder import RecorderError


class PlainTest(support.RecordingTest):
    def record(self, model, body, **options):
        with zeroproof_recorder.record(model, out=self.folder, quiet=True, **options):
            body()
        return support.events(self.trace())

    def test_a_backward_with_its_hooks_and_nodes(self):
        model = models.Mlp()
        found = self.record(model, lambda: model(batch(0)).backward(), detail="full")
        order = ["post_acc l2.bias", "post_acc l2.weight", "post_acc l1.bias", "post_acc l1.weight"]
        self.assertEqual(support.words(found, "param.post_acc"), order)
        (graph,) = (r for r in support.read(self.trace()) if r["rec"] == "graph")
        nodes = [event["node"] for event in found if event["k"] == "node.exec"]
        self.assertEqual(sorted(nodes), list(range(len(graph["nodes"]))))
        begin = next(event for event in found if event["k"] == "gt.begin")
        inside = next(event for event in found if event["k"] == "param.post_acc")
        self.assertEqual(begin["gt"], inside["gt"])
        self.assertNotEqual(begin["gt"], -1)

    def test_a_reentrant_checkpoint_is_a_nested_graph_task(self):
        model = models.Checkpointed(True)
        found = self.record(model, lambda: model(batch(0)).backward())
        kinds = support.words(found, "ckpt.forward_begin", "ckpt.recompute_begin", "gt.begin")
        self.assertEqual(
            kinds,
            ["forward_begin b1", "forward_begin b2", "begin"]
            + ["recompute_begin b2", "begin", "recompute_begin b1", "begin"],
        )
        self.assertEqual([e.get("parent") for e in found if e["k"] == "gt.begin"], [None, 0, 0])

    def test_a_nonreentrant_checkpoint_stops_early_in_the_same_task(self):
        model = models.Checkpointed(False)
        found = self.record(model, lambda: model(batch(0)).backward())
        forwards = support.words(found, "ckpt.forward_begin", "ckpt.forward_end")
        both = ["forward_begin", "forward_end"]
        self.assertEqual(forwards, [f"{end} {block}" for block in ("b1", "b2") for end in both])
        ends = [event for event in found if event["k"] == "ckpt.recompute_end"]
        self.assertEqual([end["early_stop"] for end in ends], [True, True])
        self.assertEqual(len({event["gt"] for event in ends}), 1)

    def test_two_backwards_over_one_graph(self):
        model = models.TwoHeads()

        def body():
            first, second = model(batch(0))
            first.backward(retain_graph=True)
            second.backward()

        begins = [e for e in self.record(model, body) if e["k"] == "gt.begin"]
        self.assertEqual([e["keep_graph"] for e in begins], [True, False])
        self.assertNotEqual(begins[0]["gt"], begins[1]["gt"])

    def test_an_exception_closes_its_brackets(self):
        model = models.FailsOnce()

        def body():
            with self.assertRaises(ValueError):
                model(batch(0)).backward()

        end = next(e for e in self.record(model, body) if e["k"] == "gt.end")
        self.assertEqual(end["exc"], "ValueError")

    def test_transforms_and_autocast(self):
        model = models.Mlp()

        def body():
            torch.func.grad(lambda x: model(x))(batch(0))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                model(batch(0))

        found = self.record(model, body, detail="full")
        kinds = ("ft.push", "ft.pop", "autocast.enter", "autocast.exit")
        self.assertEqual([e["k"] for e in found if e["k"] in kinds], list(kinds))
        inside = next(e for e in found if e["k"] == "module.fwd_pre")
        self.assertEqual(inside["ft"], [[1, "Grad"]])

    def test_a_small_buffer_is_written_in_parts_and_loses_nothing(self):
        model, marks = models.Mlp(), 40_000

        def body():
            for number in range(marks):
                zeroproof_recorder.mark(f"number {number:>40}")

        found = self.record(model, body, buffer_mb=1)
        labels = [e["label"] for e in found if e["k"] == "mark"][1:]
        self.assertEqual(labels, [f"number {number:>40}" for number in range(marks)])

    def test_models_are_found_and_named_from_their_root(self):
        with zeroproof_recorder.record(out=self.folder, quiet=True):
            model = models.Mlp()
            model.l2(torch.tanh(model.l1(batch(0)))).sum().backward()  # never as a whole
        names = {r["name"] for r in support.read(self.trace()) if r["rec"] == "param"}
        self.assertEqual(names, {"l1.weight", "l1.bias", "l2.weight", "l2.bias"})

    def test_of_several_optimizers_the_one_that_steps_first_counts(self):
        model = models.Mlp()
        optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in (model.l1, model.l2)]

        def body():
            for step in range(3):
                model(batch(step)).backward()
                for optimizer in optimizers:
                    optimizer.step()

        found = self.record(model, body, steps="1")
        self.assertEqual(
            next(e["k"] for e in found if e["k"] in ("gt.begin", "opt.step")), "opt.step"
        )
        self.assertEqual(len([e for e in found if e["k"] == "gt.begin"]), 1)

    def test_misuse_is_explained(self):
        wrong = [
            ({"model": "model.pt"}, "nn.Module"),
            ({"engine": models.Mlp()}, "deepspeed.initialize"),
            ({"steps": "12:10"}, "10:12"),
            ({"detail": "everything"}, "hooks, engine, full"),
            ({"buffer_mb": 0}, "1 to 2048"),
            ({"out": "/dev/null/trace"}, "cannot record there"),
        ]
        for options, words in wrong:
            with self.subTest(options=options), self.assertRaisesRegex(RecorderError, words):
                given = {"out": self.folder, "quiet": True, **options}
                with zeroproof_recorder.record(**given):
                    pass

    def test_one_recording_at_a_time(self):
        with zeroproof_recorder.record(out=self.folder, quiet=True):
            with self.assertRaisesRegex(RecorderError, "already recording"):
                with zeroproof_recorder.record(out=self.folder, quiet=True):
                    pass
        with zeroproof_recorder.record(out=self.folder, quiet=True):
            pass


if __name__ == "__main__":
    support.unittest.main()
