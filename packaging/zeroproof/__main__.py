"""Replaces this process by the zeroproof program of the package."""

import os
import sys


def main() -> None:
    """The arguments, the output and the exit code are those of the program."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "zeroproof")
    # `hunt` runs `python3`: here the one that has zeroproof_subject and perhaps PyTorch.
    folders = [os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
    os.environ["PATH"] = os.pathsep.join(folders)
    os.execv(program, ["zeroproof", *sys.argv[1:]])


if __name__ == "__main__":
    main()
