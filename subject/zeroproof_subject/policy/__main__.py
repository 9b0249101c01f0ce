"""The command: python -m zeroproof_subject.policy deepspeed, or package.module:make."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator

from zeroproof_subject.policy.server import VERSION, Host, Server

OWN = {"deepspeed": "zeroproof_subject.policy.installed:make"}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="python -m zeroproof_subject.policy",
        description="a hook policy for `zeroproof explore --policy-command`",
    )
    result.add_argument(
        "policy",
        help="deepspeed: the hook-state manager of the DeepSpeed that Python finds; or "
        "package.module:make, where make(host) returns a policy (server.py)",
    )
    return result


def input_lines() -> Iterator[str]:
    """Line by line; iterating over sys.stdin itself may read ahead."""
    return iter(sys.stdin.readline, "")


def what_to_do(error: Exception) -> str:
    """After the reason: a missing module is installed, or another Python has it."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    return f" in {sys.executable}: install it, or name another Python in the command"


def main() -> int:
    """Returns the exit code."""
    arguments = parser().parse_args()
    # What libraries print must not come between the lines of the protocol.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def write(line: str) -> None:
        out.write(line + "\n")
        out.flush()

    name = OWN.get(arguments.policy, arguments.policy)
    module, _, make = name.partition(":")
    host = Host()
    try:
        policy = getattr(importlib.import_module(module), make)(host)
    except (ImportError, AttributeError, ValueError) as error:
        reason = f"{name}: {error}{what_to_do(error)}"
        write(json.dumps({"zeroproof_policy": VERSION, "cannot_run": reason}))
        return 77
    Server(host, policy, input_lines(), write, getattr(policy, "package", "")).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
