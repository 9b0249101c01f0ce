"""The policy protocol: JSON lines over stdin and stdout (docs/reference/policies.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from zeroproof_subject.policy.snapshot import Snapshots

VERSION = 1

COUNTERS = (
    "remaining_grad_acc_hooks",
    "backward_active_depth",
    "backward_seen_this_step",
    "epilogue_ran_this_backward",
    "hooks_fired_this_backward",
    "max_expected_hooks_seen",
    "post_backward_callback_queued",
    "post_backward_callback_graph_task_id",
)

# The methods of the manager that zeroproof watches.
METHODS = (
    "enter_backward",
    "exit_backward",
    "reset_for_new_step",
    "should_refresh_expected_hook_count",
    "reenter_backward_if_needed",
    "queue_post_backward_callback",
    "update_hook_state_and_maybe_run_epilogue",
    "run_grad_acc_post_hooks",
)


class HostError(BaseException):
    """The host's answer is an exception. A policy lets it pass: it is no Exception."""


class Policy(Protocol):
    """A policy has these members besides its calls. It may omit a call that would change no state:
    on_forward_begin, on_forward_end, on_graph_task_begin(task), on_graph_task_end(task, raised),
    on_prologue, before_gradient, after_gradient(refresh_count), on_final_callback, on_epilogue,
    set_epilogue_ran(ran), on_zero_grad, on_backward_end(raised)."""

    name: str  # a word of letters, digits, '.', '-' and '_'
    roots: dict[str, Any]  # the objects whose attributes are its state

    def counters(self) -> dict[str, Any]:
        """By the names of COUNTERS; what a policy has not, it leaves out."""


class Host:
    """What a policy may ask of the autograd and the engine around it."""

    def __init__(self) -> None:
        self.ask: Callable[[str], Any] = lambda question: None
        self.notes: list[dict[str, Any]] = []

    def has_callback_api(self) -> bool:
        """Whether a final callback can be queued on a graph task."""
        return self.ask("has_callback_api")

    def current_graph_task(self) -> int:
        """The innermost running graph task, -1 for none."""
        return self.ask("current_graph_task")

    def queue_callback(self) -> None:
        """Appends a final callback to the current task: `on_final_callback` is called then."""
        self.ask("queue_callback")

    def count_expected_hooks(self) -> int:
        """How many gradient hooks the current task will fire."""
        return self.ask("count_expected_hooks")

    def run_post_hook(self) -> None:
        """Runs the engine's post hook, which runs the epilogue (`on_epilogue`)."""
        self.ask("run_post_hook")

    def abandon_gradients(self) -> None:
        """The gradients since the last epilogue belong to a backward that failed."""
        self.ask("abandon_gradients")


class Server:
    """Answers the calls that arrive for one policy."""

    def __init__(
        self,
        host: Host,
        policy: Policy,
        lines: Iterator[str],
        write: Callable[[str], None],
        package: str = "",
    ) -> None:
        self._host = host
        self._policy = policy
        self._snapshots = Snapshots(policy.roots, package)
        self._lines = lines
        self._write = write
        host.ask = self._ask

    def run(self) -> None:
        """Until the end of the input."""
        policy = self._policy
        hello = {
            "zeroproof_policy": VERSION,
            "name": policy.name,
            "versions": getattr(policy, "versions", {}),
            "prologue_rule": getattr(policy, "prologue_rule", "once_per_forward"),
            "running_mark": getattr(policy, "running_mark", "restored"),
            "now": self._now(),
        }
        self._host.notes.clear()
        self._write(json.dumps(hello))
        for line in self._lines:
            self._handle(json.loads(line))

    def _now(self) -> dict[str, Any]:
        text = self._snapshots.take()
        now = {"state": text, "counters": self._policy.counters()}
        for question in ("skips_manual_epilogue", "refuses_step", "demands_restart"):
            if hasattr(self._policy, question):
                now[question] = getattr(self._policy, question)()
        if self._snapshots.take() != text:
            self._snapshots.restore(text)
        return now

    def _say(self, reply: dict[str, Any]) -> None:
        notes, self._host.notes[:] = list(self._host.notes), []
        now = self._now()
        self._host.notes.clear()
        self._write(json.dumps({**reply, "notes": notes, "now": now}))

    def _restore(self, request: dict[str, Any]) -> None:
        self._snapshots.restore(request["from"])

    def _handle(self, request: dict[str, Any]) -> None:
        call = getattr(self._policy, request["call"], None)
        arguments = {k: v for k, v in request.items() if k not in ("call", "from")}
        self._restore(request)
        try:
            returned = call(**arguments) if call else None
        except HostError:
            self._say({"raised": "host"})
        except Exception as error:  # of the policy itself: its user would see it
            self._say({"raised": {"type": type(error).__name__, "text": str(error)}})
        else:
            self._say({"done": returned if isinstance(returned, bool) else None})

    def _ask(self, question: str) -> Any:
        self._say({"ask": question})
        for line in self._lines:
            request = json.loads(line)
            if "call" in request:
                self._handle(request)
                continue
            self._restore(request)
            if request.get("raised"):
                raise HostError
            return request["answer"]
        raise SystemExit(0)  # zeroproof has gone
