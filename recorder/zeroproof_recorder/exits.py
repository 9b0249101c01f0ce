"""Ends of a process that can be acted upon: a normal exit, and a fork.

Everything else (SIGTERM, SIGKILL, an abort in C++) is the guardian's: no signal handler is
installed, so signals do what they did before.
"""

from __future__ import annotations

import atexit
import os
import weakref

from .patches import PatchBook
from .session import Session

_sessions: weakref.WeakSet[Session] = weakref.WeakSet()
_has_fork_hook = False


def install(session: Session, close, patches: PatchBook) -> None:
    """Calls `close` at exit; in forked children the session is forgotten."""
    global _has_fork_hook
    at_exit = session.guard.observer("exit", ("end",)).hook(close)
    atexit.register(at_exit)
    patches.then(lambda: atexit.unregister(at_exit))
    _sessions.add(session)
    patches.then(lambda: _sessions.discard(session))
    if not _has_fork_hook:  # cannot be taken back, and is a no-op without a session
        os.register_at_fork(after_in_child=_forget_all)
        _has_fork_hook = True


def _forget_all() -> None:
    for session in list(_sessions):
        session.guard.observer("fork").guarded(session.abandon)()
