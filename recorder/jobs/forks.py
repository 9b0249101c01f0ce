"""Ranks as forks of a process that has imported PyTorch: a run takes seconds fewer each.

A forked rank ends as an interpreter ends: the uncaught exception is printed by sys.excepthook,
threads are joined, functions of atexit run. Its files for stdout and stderr outlive it.
"""

import atexit
import faulthandler
import importlib
import io
import os
import runpy
import signal
import sys
import tempfile
import threading
import time
import warnings

WARNING_S = 5


def preload(names):
    """Imports what jobs use, where it is there; does not print."""
    out, sys.stdout = sys.stdout, io.StringIO()
    errors, sys.stderr = sys.stderr, io.StringIO()
    try:
        warnings.simplefilter("ignore")
        for name in names:
            try:
                importlib.import_module(name)
            except Exception:  # a package that cannot be imported makes its jobs fail by itself
                continue
    finally:
        sys.stdout, sys.stderr = out, errors
        warnings.resetwarnings()


class ForkedRank:
    """One rank: a child process that runs a script as `python SCRIPT ...` would."""

    def __init__(self, command, env, timeout_s):
        self._files = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        self._code = None
        self.pid = os.fork()
        if self.pid == 0:
            _become(command, env, self._files, timeout_s)

    def communicate(self, timeout):
        """Waits; its stdout and stderr. A rank that is late is killed."""
        deadline = time.monotonic() + timeout
        while self._code is None and time.monotonic() < deadline:
            self._poll(os.WNOHANG)
            time.sleep(0.02)
        if self._code is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._poll(0)
        texts = []
        for file in self._files:
            file.seek(0)
            texts.append(file.read())
            file.close()
        return texts

    def _poll(self, how):
        pid, status = os.waitpid(self.pid, how)
        if pid:
            self._code = os.waitstatus_to_exitcode(status)

    @property
    def returncode(self):
        """As of subprocess.Popen."""
        return self._code


def _become(command, env, files, timeout_s):
    """Never returns."""
    os.setsid()
    for target, file in zip((1, 2), files):
        os.dup2(file.fileno(), target)
    for number in (1, 2):  # what the parent's streams had not written yet is not ours
        stream = open(number, "w", buffering=1, closefd=False)  # noqa: SIM115
        setattr(sys, "stdout" if number == 1 else "stderr", stream)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    os.environ.clear()
    os.environ.update(env)
    faulthandler.dump_traceback_later(max(1, timeout_s - WARNING_S), exit=False, file=2)
    code = _run(command)
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _run(command):
    """`python -m MODULE ...` or `python SCRIPT ...`; the exit code."""
    try:
        if command[0] == "-m":
            sys.argv = list(command[1:])
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(command)
            sys.path.insert(0, os.path.dirname(command[0]))
            runpy.run_path(command[0], run_name="__main__")
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0
