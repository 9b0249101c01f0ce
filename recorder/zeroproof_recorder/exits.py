"""The ways in which a process ends, and a readable file after each of them."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import threading
from collections.abc import Callable

from .patches import PatchBook


class Exits:
    """Closes the recording at a normal exit and at SIGTERM, and writes it out at Ctrl-C.

    A signal may come while the main thread waits in a collective that never ends: Python's own
    handlers would wait with it. So a thread is told by the interpreter's wake-up pipe, writes the
    file, and lets the signal do what it would have done.
    """

    def __init__(self, flush: Callable[[], None], close: Callable[[], None], forget: Callable):
        self._flush = flush
        self._close = close
        self._forget = forget  # in a forked child
        self._is_child = False

    def install(self, patches: PatchBook) -> None:
        """Signals only where this is the main thread and nobody else listens to them."""
        atexit.register(self._close)
        patches.then(lambda: atexit.unregister(self._close))
        os.register_at_fork(after_in_child=self._after_fork)
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        self._listen(patches)

    def _listen(self, patches: PatchBook) -> None:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        if before != -1:  # an event loop listens: leave it its pipe
            signal.set_wakeup_fd(before)
            os.close(reader)
            os.close(writer)
            return
        signal.signal(signal.SIGTERM, self._on_term)
        watcher = threading.Thread(
            target=self._watch, args=(reader,), name="zeroproof-signals", daemon=True
        )
        watcher.start()
        patches.then(lambda: self._unlisten(writer))

    def _unlisten(self, writer: int) -> None:
        if signal.getsignal(signal.SIGTERM) == self._on_term:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if signal.set_wakeup_fd(-1) not in (-1, writer):
            return
        os.close(writer)  # ends the watcher

    def _on_term(self, _number, _frame) -> None:
        """Only has to exist: without a handler nothing is written to the pipe."""
        if self._is_child:
            _die_of(signal.SIGTERM)

    def _watch(self, reader: int) -> None:
        while True:
            numbers = os.read(reader, 64)
            if not numbers:
                os.close(reader)
                return
            if signal.SIGTERM in numbers and signal.getsignal(signal.SIGTERM) == self._on_term:
                self._close()
                _die_of(signal.SIGTERM)
            self._flush()

    def _after_fork(self) -> None:
        """A forked worker shares the pipe: it must neither write to it nor to the file."""
        self._is_child = True
        self._forget()
        if signal.getsignal(signal.SIGTERM) == self._on_term:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _die_of(number: int) -> None:
    """As if there had never been a handler, from any thread."""
    ctypes.CDLL(None).signal(int(number), None)  # SIG_DFL is the null pointer
    os.kill(os.getpid(), number)
