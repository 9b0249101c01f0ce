"""Follows a page: saves its files, runs its commands, and compares what they print.

A ```python block whose first line is `# NAME.py` is a file. In a ```console block a line `$ COMMAND`
is run, and the lines below it are printed, in that order. A line `…` stands for any lines, and one
that ends with ` …` for a line that begins so. A command that needs a module which the Python at
hand lacks is not run, nor one after it that reads what it would have written.
"""

import os
import re
import subprocess

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
# What a command needs.
NEEDS = {r"\btorchrun\b|\bzeroproof hunt\b": "torch", r"zeroproof_subject\.policy deepspeed": "deepspeed"}
FAILED = (2, 5, 6, 77, 126, 127)  # what is neither held nor falsified
WRITES = re.compile(r"--(?:out|corpus) (\S+)")


class Step:
    """A command and what it prints."""

    def __init__(self, command, expected):
        self.command, self.expected = command, expected

    @property
    def needs(self):
        return {module for words, module in NEEDS.items() if re.search(words, self.command)}


def steps_of(block):
    steps = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line[2:], []))
        elif steps:
            steps[-1].expected.append(line)
    return steps


def missing_line(expected, printed):
    """The first expected line that is not printed after those before it, or None."""
    lines = printed.splitlines()
    for line in expected:
        if line == "…":
            continue
        matches = (lambda it: it.startswith(line[:-2])) if line.endswith(" …") else line.__eq__
        at = next((at for at, it in enumerate(lines) if matches(it)), None)
        if at is None:
            return line
        lines = lines[at + 1:]
    return None


class Follower:
    """Runs the commands of one page in one folder, in their order."""

    def __init__(self, folder, environment, modules, elsewhere):
        self.folder, self.environment = folder, environment
        self.modules, self.elsewhere = modules, elsewhere
        self.ran, self.skipped, self.findings = [], [], []
        self.unwritten = set()

    def save_files(self, page):
        for language, text in BLOCK.findall(page):
            name = re.match(r"# (\w+\.py)\n", text)
            if language == "python" and name:
                with open(os.path.join(self.folder, name[1]), "w", encoding="utf-8") as file:
                    file.write(text)

    def follow(self, page):
        self.save_files(page)
        for language, text in BLOCK.findall(page):
            for step in steps_of(text) if language == "console" else []:
                self.take(step)

    def take(self, step):
        if any(step.command.startswith(command) for command in self.elsewhere):
            return
        words = set(re.findall(r"[^\s/]+", step.command))
        if step.needs - self.modules or words & self.unwritten:
            self.unwritten |= set(WRITES.findall(step.command))
            self.skipped.append(step.command)
            return
        ended = subprocess.run(["bash", "-c", step.command], cwd=self.folder, text=True,
                               env=self.environment, stdin=subprocess.DEVNULL,
                               capture_output=True, check=False)
        self.ran.append(step.command)
        missing = missing_line(step.expected, ended.stdout)
        if ended.returncode in FAILED:
            self.findings.append(f"$ {step.command}\nexit {ended.returncode}\n{ended.stderr}")
        elif missing is not None:
            self.findings.append(f"$ {step.command}\nlacks: {missing}\n{ended.stdout}{ended.stderr}")
