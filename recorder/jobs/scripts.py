"""The jobs of a folder: one for each script and each of its ARGUMENTS."""

import ast
import fnmatch
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Modules that a script imports, and the packages that they need.
PACKAGES = {
    "engines": "deepspeed",
    "lightning": "lightning",
    "accelerate": "accelerate",
    "tiny_language_models": "transformers",
    "peft": "peft",
    "trl": "trl",
}


@dataclass(frozen=True)
class Job:
    """One run of a script: its arguments, how many ranks, what a reader should say of it."""

    kind: str
    script: Path
    arguments: tuple
    world: int
    purpose: str
    expectation: str
    packages: tuple = ()
    reason: str = ""
    recorder: str = ""

    @property
    def needs(self):
        """none: PyTorch alone; deepspeed: DeepSpeed alone; others: trainers above them."""
        if not self.packages:
            return "none"
        return "deepspeed" if self.packages == ("deepspeed",) else "others"

    @property
    def name(self):
        """The script's name and its arguments."""
        return "-".join([self.script.stem, *self.arguments])


def find_jobs(kind, patterns="*"):
    """All jobs of a kind whose names match one of the comma-separated globs."""
    if kind == "suite":
        jobs = list(_suite())
    else:
        jobs = [job for path in sorted((HERE / kind).glob("*.py")) for job in jobs_of(kind, path)]
    # Jobs with few packages first: what has been imported for one job stays there.
    jobs.sort(key=lambda job: len(job.packages))
    globs = [word.strip() for word in patterns.split(",")]
    return [job for job in jobs if any(fnmatch.fnmatch(job.name, glob) for glob in globs)]


def jobs_of(kind, path):
    """A script's jobs: its constants are read, not run.

    ARGUMENTS: one job each; WORLD: ranks; EXPECT: what a finding has to say of a mistake; UNSEEN:
    why a trace cannot show it; RECORDER: options of `zeroproof_recorder run` that it needs.
    """
    tree = ast.parse(path.read_text())
    facts = {"ARGUMENTS": ("",), "WORLD": 2, "EXPECT": "", "UNSEEN": "", "RECORDER": ""}
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in facts:
            facts[node.targets[0].id] = ast.literal_eval(node.value)
    purpose = (ast.get_docstring(tree) or "").splitlines()[0]
    packages = _packages(tree)
    for words in facts["ARGUMENTS"]:
        words = tuple(words.split())
        world = int(words[-1]) if words[-1:] == ("4",) else facts["WORLD"]
        tail = (facts["EXPECT"], packages, facts["UNSEEN"], facts["RECORDER"])
        yield Job(kind, path, words, world, purpose, *tail)


def _packages(tree):
    """The packages that a script imports, at any place."""
    modules = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules.append(node.module or "")
    found = [PACKAGES[name] for name in modules if name in PACKAGES]
    return tuple(dict.fromkeys(found))


def _suite():
    """What record_all.py records, as jobs."""
    from record_all import RUNS

    for script, scenario, stages, worlds in RUNS:
        for stage in stages or (None,):
            packages = ("deepspeed",) if stages else ()
            for world in worlds:
                words = (scenario.rpartition(":")[2], *([] if stage is None else [str(stage)]))
                yield Job("suite", HERE / script, words, world, "", "", packages)
