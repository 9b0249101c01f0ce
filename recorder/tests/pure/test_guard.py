"""What an observer does wrong never reaches the job."""

import contextlib
import io
import signal
import sys
import unittest

from zeroproof_recorder.calls import Use, observed, with_stand_in
from zeroproof_recorder.guard import Guard


class OfTheJob(Exception):
    pass


def wrong(*_args, **_kwargs):
    raise ValueError("the observer's\nsecond line")


class GuardTest(unittest.TestCase):
    def setUp(self):
        self.notes, self.stderr = [], io.StringIO()
        self.observer = Guard(lambda *note: self.notes.append(note)).observer("one", ["a.b"])
        redirected = contextlib.redirect_stderr(self.stderr)
        redirected.__enter__()
        self.addCleanup(redirected.__exit__, None, None, None)

    def check_off(self):
        text = "observer one failed and is off: ValueError: the observer's"
        self.assertEqual(self.notes, [(text, "one", ["a.b"])])
        self.assertEqual(len(self.stderr.getvalue().splitlines()), 1)
        self.assertFalse(self.observer.is_on)

    def test_a_failing_observer_switches_itself_off_and_says_so_once(self):
        for before, after in ((wrong, None), (None, wrong), (wrong, wrong)):
            with self.subTest(before=before, after=after):
                self.setUp()
                call = observed(lambda x, y=2: x + y, self.observer, Use(), before, after)
                self.assertEqual((call(1), call(1, y=1)), (3, 2))
                self.check_off()

    def test_an_exception_of_the_job_goes_on_as_it_is(self):
        def job():
            raise error

        for after in (None, lambda call: None, wrong):
            error = OfTheJob()
            with self.assertRaises(OfTheJob) as raised:
                observed(job, self.observer, Use(), None, after)()
            self.assertIs(raised.exception, error)
            self.assertIsNone(error.__context__)
        self.check_off()

    def test_arguments_arrive_as_they_came(self):
        def job(*args, **kwargs):
            return args, kwargs

        def spoils(call):
            call.args = ()
            call.kwargs.clear()

        first, second = object(), object()
        args, kwargs = observed(job, self.observer, Use(), spoils, spoils)(first, b=second)
        self.assertIs(args[0], first)
        self.assertIs(kwargs["b"], second)

    def test_arguments_are_picked_by_name(self):
        def job(subject, param, index=None, *, flag=False):
            return None

        def hidden(*args):
            return None

        seen = []

        def watch(call):
            picked = [call.argument(name) for name in ("param", "index", "flag", "absent")]
            seen.append([*picked, call.argument("param", place=1)])

        watched = observed(job, self.observer, Use(), watch)
        watched(0, 1, 2)
        watched(0, index=2, param=1, flag=True)
        observed(hidden, self.observer, Use(), watch)(0, 1)
        self.assertEqual(seen[0], [1, 2, False, None, 1])
        self.assertEqual(seen[1], [1, 2, True, None, 1])
        self.assertEqual(seen[2], [None, None, None, None, 1])

    def test_a_stand_in_that_cannot_be_made_is_left_out(self):
        def job(function, x):
            return function(x)

        doubled = with_stand_in(job, self.observer, Use(), lambda f: lambda x: 2 * f(x))
        self.assertEqual((doubled(abs, -1), doubled(function=abs, x=-1)), (2, 2))
        self.assertEqual(with_stand_in(job, self.observer, Use(), wrong)(abs, -1), 1)
        self.check_off()

    def test_a_signal_handler_of_the_job_may_raise_inside_an_observer(self):
        def handler(_number, _frame):
            raise OfTheJob

        before = signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        watched = observed(abs, self.observer, Use(), lambda _: signal.raise_signal(signal.SIGUSR1))
        with self.assertRaises(OfTheJob):
            watched(1)
        self.assertTrue(self.observer.is_on)

    def test_ctrl_c_and_exit_pass(self):
        for error in (KeyboardInterrupt, SystemExit):

            def stop(_call, error=error):
                raise error

            with self.assertRaises(error):
                observed(abs, self.observer, Use(), stop)(1)

    def test_stderr_and_trace_may_be_gone(self):
        def no_report(*_note):
            raise OSError

        observer = Guard(no_report).observer("two")
        sys.stderr.close()
        self.assertEqual(observed(abs, observer, Use(), wrong)(-1), 1)


if __name__ == "__main__":
    unittest.main()
