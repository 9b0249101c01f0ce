"""The policy deepspeed-0.18.7 once more, in Python, and policies with a mistake."""

import types

from zeroproof_subject.policy.server import METHODS


class ManagerPolicy:
    name = "python-manager"
    running_mark = "left_by_exception"

    def __init__(self, host):
        self.host = host
        self.values = types.SimpleNamespace(
            rem=0, d=0, seen=False, epi=False, fired=0, most=0, q=False
        )
        self.values.task = None
        self.roots = {"values": self.values}

    def counters(self):
        now = self.values
        return {
            "remaining_grad_acc_hooks": now.rem,
            "len(_grad_acc_post_hooks)": 1,
            "backward_active_depth": now.d,
            "backward_seen_this_step": now.seen,
            "epilogue_ran_this_backward": now.epi,
            "hooks_fired_this_backward": now.fired,
            "max_expected_hooks_seen": now.most,
            "post_backward_callback_queued": now.q,
            "post_backward_callback_graph_task_id": now.task,
        }

    def note(self, method, *arguments):
        """A method of the manager, with what is noted around it."""
        note = {"call": method, "counters": self.counters()}
        self.host.notes.append({**note, "argument": arguments[0]} if arguments else note)
        try:
            returned = getattr(self, "_" + method)(*arguments)
        except BaseException:
            self.host.notes.append({"return": method, "counters": self.counters(), "raised": True})
            raise
        note = {"return": method, "counters": self.counters()}
        self.host.notes.append({**note, "returned": returned} if returned is not None else note)
        return returned

    def _is_between_phases(self):
        return self.values.rem == 0 and self.values.d == 0 and self.values.seen

    def _clear(self):
        self.values.fired = self.values.most = 0
        self.values.q, self.values.task = False, None

    def _enter_backward(self):
        if self.values.d == 0 and not self.values.seen:
            self._clear()
            self.values.rem = 0
        self.values.d += 1
        self.values.seen = True

    def _exit_backward(self):
        self.values.d = max(self.values.d - 1, 0)

    def _reset_for_new_step(self):
        self._clear()
        self.values.seen = self.values.epi = False

    def _should_refresh_expected_hook_count(self):
        return self.values.fired == 0 or self._is_between_phases()

    def _reenter_backward_if_needed(self):
        if self._is_between_phases():
            self.note("enter_backward")

    def _queue_post_backward_callback(self):
        if self.values.q:
            return True
        if self.values.d == 0 or not self.host.has_callback_api():
            return False
        task = self.host.current_graph_task()
        if task == -1:
            return False
        self.host.queue_callback()
        self.values.q, self.values.task = True, task
        return True

    def _update_hook_state_and_maybe_run_epilogue(self, expected):
        now = self.values
        now.fired += 1
        now.most = max(now.most, expected)
        is_queued = self.note("queue_post_backward_callback")
        now.rem = max(now.most - now.fired, 0)
        if not is_queued and now.rem == 0:
            self.note("run_grad_acc_post_hooks")

    def _run_grad_acc_post_hooks(self):
        if self.values.d > 0:
            self.host.run_post_hook()

    def on_forward_begin(self):
        self.note("reset_for_new_step")

    def on_prologue(self):
        self.note("enter_backward")
        self.note("queue_post_backward_callback")

    def before_gradient(self):
        refreshes = self.note("should_refresh_expected_hook_count")
        self.note("reenter_backward_if_needed")
        return refreshes

    def after_gradient(self, refresh_count):
        expected = self.host.count_expected_hooks() if refresh_count else self.values.most
        self.note("update_hook_state_and_maybe_run_epilogue", expected)

    def on_final_callback(self):
        self.note("run_grad_acc_post_hooks")

    def on_epilogue(self):
        self.note("exit_backward")

    def set_epilogue_ran(self, ran):
        self.values.epi = ran


class Moody(ManagerPolicy):
    """It answers otherwise where it is asked again, which is not in its state."""

    name = "moody"
    asked = set()

    def before_gradient(self):
        now = str(self.values)
        is_new = now not in self.asked
        self.asked.add(now)
        super().before_gradient()
        return is_new


class Raising(ManagerPolicy):
    """Its prologue fails, as a branch with a mistake would."""

    name = "raising"

    def on_prologue(self):
        raise ValueError("no such counter")


class Dying(ManagerPolicy):
    """The process ends in the middle of a backward."""

    name = "dying"

    def on_epilogue(self):
        import os
        import sys

        sys.stderr.write("the last words\n")
        sys.stderr.flush()
        os._exit(3)
