"""DDP, FSDP2 and collectives on gloo, one and two ranks."""

import unittest

import support
import torch

# FSDP2 made CUDA streams whatever the device was.
HAS_FSDP2_ON_CPU = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 7)


EVERY_WAY = """
import torch
import torch.distributed as dist
from job import begin

rank, _ = begin()
pair = dist.new_group([0, 1], group_desc="pair")
peer = 1 - rank
x = torch.ones(4)
dist.all_reduce(x)
if rank == 0:
    dist.send(x, peer, tag=5)
    dist.recv(x, peer)
else:
    dist.recv(x, peer, tag=5)
    dist.send(x, peer)
work = [dist.isend(x, peer, group=pair), dist.irecv(torch.empty(4), peer, group=pair)]
[each.wait() for each in work]
with torch.inference_mode():
    dist.broadcast(x, 1)
name = dist.group.WORLD.group_name
y = torch.ops._c10d_functional.all_reduce(x, "sum", name)
torch.ops._c10d_functional.wait_tensor(y)
dist.reduce_scatter_tensor(torch.empty(2), x)
"""


class DistributedTest(support.RecordingTest):
    def job(self, script, *arguments, world, codes=None):
        program = arguments[0] if arguments else "job"
        run = ("--detail", "full", "--program", program)
        path = str(support.JOBS / script)
        self.run_job(path, *arguments, world=world, codes=codes, run=run)
        self.wait_for_guardians()
        names = [f"{program}__w{world}_r{rank}.jsonl.gz" for rank in range(world)]
        return [support.events(self.folder / name) for name in names]

    def collectives(self, found):
        issued = [e for e in found if e["k"] == "coll.issue"]
        return [(e["key"], e["op"], e["bytes"], e.get("params")) for e in issued]

    def test_ddp_buckets_are_launched_in_order_and_then_rebuilt(self):
        for world in (1, 2):
            with self.subTest(world=world):
                ranks = self.job("ddp_job.py", "ddp_mlp", world=world)
                backward = ("param.post_acc", "bucket.ready", "gt.end")
                order = support.words(ranks[0], *backward)
                first, second = order[: order.index("end") + 1], order[order.index("end") + 1 :]
                accumulated = [
                    f"post_acc {n}" for n in ("l2.bias", "l2.weight", "l1.bias", "l1.weight")
                ]
                self.assertEqual(first, [*accumulated, "ready 0", "end"])
                again = [*accumulated[:2], "ready 0", *accumulated[2:], "ready 1", "end"]
                self.assertEqual(second[: len(again)], again)
                buckets = [e for e in ranks[0] if e["k"] == "bucket.ready"]
                self.assertEqual(buckets[1]["params"], ["l2.bias", "l2.weight"])
                self.assertEqual([b["last"] for b in buckets], [True, False, True, False, True])
                self.assertEqual(*(self.collectives(ranks[n]) for n in (0, world - 1)))
                incomplete = {e["key"] for e in ranks[0] if e["k"] == "coll.issue"}
                incomplete -= {e["key"] for e in ranks[0] if e["k"] == "coll.complete"}
                self.assertEqual(incomplete, set())

    def test_ddp_without_synchronisation_says_so(self):
        (found,) = self.job("ddp_job.py", "ddp_no_sync", world=1)
        marks = support.words(found, "mark", "bucket.ready")[1:5]
        self.assertEqual(marks, ["mark ddp.no_sync", "ready 0", "mark ddp.no_sync", "ready 0"])

    @unittest.skipUnless(HAS_FSDP2_ON_CPU, "this PyTorch's FSDP2 needs CUDA")
    def test_collectives_are_seen_however_they_are_called(self):
        self.run_job(EVERY_WAY, world=2, run=("--program", "every"))
        for rank in (0, 1):
            path = self.trace(f"every__w2_r{rank}.jsonl.gz")
            issued = [e for e in support.events(path) if e["k"] == "coll.issue"]
            proper = [(e["key"], e["op"], e.get("root")) for e in issued if "peer" not in e]
            self.assertEqual(
                [each for each in proper if each[0].startswith("world")][-4:],
                [
                    ("world:0", "all_reduce", None),
                    ("world:1", "broadcast", 1),
                    ("world:2", "all_reduce", None),
                    ("world:3", "reduce_scatter_tensor", None),
                ],
            )
            apart = [(e["key"], e["op"], e["peer"], e["tag"]) for e in issued if "peer" in e]
            first = ("send", "recv") if rank == 0 else ("recv", "send")
            expected = [
                ("world:p2p:0", first[0], 1 - rank, 5),
                ("world:p2p:1", first[1], 1 - rank, 0),
                ("g0_1:p2p:0", "send", 1 - rank, 0),
                ("g0_1:p2p:1", "recv", 1 - rank, 0),
            ]
            self.assertEqual(apart, expected)
            keys = {e["key"] for e in support.events(path) if e["k"] == "coll.complete"}
            self.assertEqual({e["key"] for e in issued} - keys, set())
            groups = {r["name"]: r for r in support.read(path) if r["rec"] == "group"}
            self.assertEqual((groups["g0_1"]["desc"], groups["world"]["backend"]), ("pair", "gloo"))

    def test_fsdp2_units(self):
        for world in (1, 2):
            with self.subTest(world=world):
                ranks = self.job("fsdp2_job.py", "fsdp2_mlp", world=world)
                found = ranks[0][: next(n for n, e in enumerate(ranks[0]) if e["k"] == "opt.step")]
                calls = [
                    f"{e['method'].removeprefix('fsdp2.')} {e['module']}"
                    for e in found
                    if e["k"] == "engine.call" and e["gt"] != -1
                ]
                # l1's input needs no gradient: the root's final callback makes up for it.
                expected = ["pre_backward l2", "post_backward l2", "pre_backward l1"]
                self.assertEqual(calls, [*expected, "final_callback model", "post_backward l1"])
                gathers = [e["k"].split(".")[1] for e in found if e["k"].startswith("zparam.")]
                self.assertEqual(gathers.count("gather_begin"), gathers.count("gather_end"))
                self.assertEqual(gathers.count("partition"), 4)
                self.assertEqual(len(support.words(found, "param.post_acc")), 4)

    def test_a_rank_that_skips_a_collective_is_seen_from_both_sides(self):
        codes = [1, None]
        first, second = self.job("skipped_collective_job.py", world=2, codes=codes)
        mine, theirs = self.collectives(first), self.collectives(second)
        self.assertEqual(len(mine), len(theirs) + 1)
        at = next(n for n, (one, other) in enumerate(zip(mine, theirs)) if one != other)
        self.assertEqual(mine[at][0], "world:7")
        self.assertEqual((mine[at][3], theirs[at][3]), (["l2.weight"], ["l1.weight"]))
        failure = next(e for e in first if e["k"] == "exc")
        self.assertEqual(failure["key"], mine[-1][0])
        self.assertIn("Timed out waiting 10000ms", failure["message"])
        completed = [e["key"] for e in first if e["k"] == "coll.complete"]
        self.assertNotIn(mine[-1][0], completed)

    def test_a_collective_that_kills_the_process_is_in_the_file(self):
        script = "skipped_collective_job.py"
        first, second = self.job(script, "Mlp", world=2, codes=[None, None])
        issued = [self.collectives(found)[-1] for found in (first, second)]
        self.assertEqual([issue[0] for issue in issued], ["world:10", "world:10"])
        self.assertEqual([issue[3] for issue in issued], [["l1.bias"], ["l1.weight"]])


if __name__ == "__main__":
    support.unittest.main()
