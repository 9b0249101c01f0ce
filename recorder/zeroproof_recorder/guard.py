"""The guard around everything that observes: what an observer does wrong never reaches the job."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Optional

try:  # torch.compile takes this for True where it traces, so it does not see an observer
    from torch.compiler import is_dynamo_compiling as is_traced
except ImportError:  # without PyTorch

    def is_traced() -> bool:
        """Without PyTorch no code is compiled."""
        return False


Report = Callable[[str, str, list[str]], None]  # text, observer, lost kinds


class Observer:
    """One part of the recorder that watches one thing; it can be off, and then stays off.

    Code of an observer runs only through `guarded`, so an exception in it ends the observer and
    not the job.
    """

    def __init__(self, name: str, lost: list[str], report: Report):
        self.name = name
        self.lost = lost  # kinds of events that a trace lacks once this observer is off
        self.is_on = True
        self.at_off: Callable[[], None] = _nothing  # puts right what only this observer can
        self._report = report
        self._lock = threading.Lock()

    def guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, made harmless: None instead of an exception, and None when off."""

        def harmless(*args, **kwargs):
            if not self.is_on:
                return None
            try:
                return function(*args, **kwargs)
            except Exception as error:
                return self.failed(error)

        return harmless

    def always(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, made harmless, also while off: for what has to be taken back."""

        def harmless(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except Exception as error:
                return self.failed(error)

        return harmless

    def hook(self, function: Callable[..., Any]) -> Callable[..., None]:
        """The function as a hook for PyTorch, which takes a result for a replacement."""

        def hook(*args):
            if self.is_on and not is_traced():
                try:
                    function(*args)
                except Exception as error:
                    self.failed(error)

        return hook

    def failed(self, error: Exception) -> None:
        """What to do in place of passing an exception on; those of the job do go on."""
        if _is_of_job(error):
            raise error
        self.switch_off(error)

    def switch_off(self, error: BaseException) -> None:
        """Ends this observer, and says so once."""
        with self._lock:
            if not self.is_on:
                return
            self.is_on = False
        words = f"{type(error).__name__}: {_first_line(error)}"
        self.at_off()
        text = f"observer {self.name} failed and is off: {words}"
        _say(f"zeroproof-recorder: {text}; the job goes on as without it")
        self._note(text)

    def unobserved(self, reason: str) -> None:
        """Ends this observer because this version of PyTorch or DeepSpeed has no place for it."""
        with self._lock:
            if not self.is_on:
                return
            self.is_on = False
        self._note(f"{self.name} is not observed: {reason}")

    def _note(self, text: str) -> None:
        try:
            self._report(text, self.name, self.lost)
        except Exception as error:  # the file is beyond help
            _say(f"zeroproof-recorder: no note could be left: {error!r}")


class Guard:
    """All observers of a recording by name."""

    def __init__(self, report: Report):
        self._report = report
        self._observers: dict[str, Observer] = {}

    def observer(self, name: str, lost: Iterable[str] = ()) -> Observer:
        """The observer of that name; what is lost with it adds up."""
        found = self._observers.get(name)
        if found is None:
            found = self._observers[name] = Observer(name, [], self._report)
        found.lost += [kind for kind in lost if kind not in found.lost]
        return found

    @property
    def observers(self) -> list[Observer]:
        """All of them, in the order in which they were made."""
        return list(self._observers.values())


def _nothing() -> None:
    pass


def _is_of_job(error: Exception) -> bool:
    """Whether a signal handler of the job raised it while an observer happened to run."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def _code_of(handler: Any) -> Optional[Any]:
    function = getattr(handler, "__func__", handler)
    return getattr(function, "__code__", None)


def _first_line(error: BaseException) -> str:
    try:
        return (str(error).splitlines() or [""])[0][:400]
    except Exception:
        return "(its message cannot be printed)"


def _say(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except Exception:  # stderr is closed
        pass
