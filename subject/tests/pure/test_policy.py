"""The state of a policy by value, and the lines that a policy answers."""

import collections
import json
import subprocess
import sys
import threading
import types
import unittest

import manager_policy

from zeroproof_subject.policy.server import Host, Server
from zeroproof_subject.policy.snapshot import Snapshots


class Own:
    """Of the package whose objects are copied by value."""

    def __init__(self):
        self.count = 0
        self.me = self


Own.__module__ = "deepspeed.somewhere"


def some_values():
    return types.SimpleNamespace(
        number=1,
        flag=True,
        nothing=None,
        names=["a", ("b", 2)],
        seen={3, 1},
        queue=collections.deque([1]),
        table={1: [2], "x": {}},
        lock=threading.Lock(),
        own=Own(),
    )


class SnapshotTest(unittest.TestCase):
    def setUp(self):
        self.values = some_values()
        self.snapshots = Snapshots({"values": self.values}, "deepspeed")

    def test_every_value_comes_back(self):
        before = dict(vars(self.values))
        text = self.snapshots.take()
        changes = {
            "number": lambda: setattr(self.values, "number", 2),
            "names": lambda: self.values.names.append("c"),
            "seen": lambda: self.values.seen.add(5),
            "queue": lambda: self.values.queue.popleft(),
            "table": lambda: self.values.table[1].append(3),
            "own": lambda: setattr(self.values.own, "count", 7),
            "new": lambda: setattr(self.values, "new", 1),
            "gone": lambda: delattr(self.values, "flag"),
        }
        for name, change in changes.items():
            with self.subTest(name):
                change()
                self.assertNotEqual(self.snapshots.take(), text)
                self.snapshots.restore(text)
                self.assertEqual(self.snapshots.take(), text)
        self.assertEqual(self.values.names, ["a", ("b", 2)])
        self.assertEqual(self.values.own.count, 0)
        self.assertIs(self.values.lock, before["lock"])
        self.assertIs(self.values.own, before["own"])

    def test_equal_closures_are_one_and_others_are_not(self):
        def making(number):
            return lambda: number

        self.values.callback = making(1)
        text = self.snapshots.take()
        self.values.callback = making(1)
        self.assertEqual(self.snapshots.take(), text)
        self.values.callback = making(2)
        self.assertNotEqual(self.snapshots.take(), text)
        self.snapshots.restore(text)
        self.assertEqual(self.values.callback(), 1)


class Conversation:
    """A server whose lines are written by a test; `ask` answers its questions."""

    def __init__(self, policy, answers):
        host = Host()
        self.replies, self.requests = [], []
        self.answers = answers
        self.server = Server(host, policy(host), self.lines(), self.take)
        self.server.run()

    def lines(self):
        while self.requests or self.answers:
            yield json.dumps(self.requests.pop() if self.requests else self.answers.pop(0))

    def take(self, line):
        reply = json.loads(line)
        self.replies.append(reply)
        if self.answers and "from" not in self.answers[0]:
            self.answers[0]["from"] = reply["now"]["state"]


class CommandTest(unittest.TestCase):
    def test_a_missing_module_says_what_to_do(self):
        run = subprocess.run(
            [sys.executable, "-m", "zeroproof_subject.policy", "no_such_module:make"],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(run.returncode, 77)
        reason = json.loads(run.stdout)["cannot_run"]
        self.assertIn("No module named 'no_such_module'", reason)
        self.assertIn(f"in {sys.executable}: install it", reason)


class ServerTest(unittest.TestCase):
    def asked(self, *lines):
        return Conversation(manager_policy.ManagerPolicy, list(lines)).replies

    def test_a_call_asks_and_ends(self):
        replies = self.asked(
            {"call": "on_prologue"}, {"answer": True}, {"answer": 7}, {"answer": 0}
        )
        asks = [reply.get("ask") for reply in replies]
        expected = ["has_callback_api", "current_graph_task", "queue_callback"]
        self.assertEqual(asks, [None, *expected, None])
        self.assertEqual(replies[0]["zeroproof_policy"], 1)
        end = replies[-1]
        self.assertIsNone(end["done"])
        self.assertEqual(end["now"]["counters"]["post_backward_callback_graph_task_id"], 7)
        self.assertEqual(end["notes"][0]["return"], "queue_post_backward_callback")
        self.assertTrue(end["notes"][0]["returned"])

    def test_the_host_s_exception_passes(self):
        replies = self.asked(
            {"call": "on_prologue"},
            {"answer": False},
            {"call": "on_final_callback"},
            {"raised": True},
        )
        self.assertEqual(replies[-1]["raised"], "host")
        self.assertTrue(replies[-1]["notes"][-1]["raised"])

    def test_a_call_that_the_policy_has_not_changes_nothing(self):
        hello, end = self.asked({"call": "on_zero_grad"})
        self.assertIsNone(end["done"])
        self.assertEqual(end["now"], hello["now"])

    def test_a_call_begins_in_the_state_that_it_names(self):
        first = self.asked({"call": "on_prologue"}, {"answer": False})[0]["now"]["state"]
        replies = self.asked(
            {"call": "on_prologue"},
            {"answer": False},
            {"call": "on_epilogue", "from": first},
        )
        self.assertEqual(replies[2]["now"]["counters"]["backward_active_depth"], 1)
        self.assertEqual(replies[-1]["now"]["state"], first)


if __name__ == "__main__":
    unittest.main()
