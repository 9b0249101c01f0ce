"""What an engine's ranks saw against what plain PyTorch has to see."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from zeroproof_subject.program import Program

Seen = list[dict[str, Any]]


@dataclass(frozen=True)
class Tolerance:
    """Numbers are alike that differ by at most absolute + relative * the expected one."""

    relative: float
    absolute: float

    def allows(self, got: float, expected: float) -> bool:
        """Two NaNs are alike."""
        if got == expected or (got != got and expected != expected):
            return True
        return abs(got - expected) <= self.absolute + self.relative * abs(expected)


BITWISE = Tolerance(0.0, 0.0)
# What depends on weights has been through an optimizer, whose order of operations is its own.
TOLERANCES = {
    "loss": Tolerance(1e-4, 1e-2),
    "parameters": Tolerance(1e-5, 1e-6),
    "optimizer_state": Tolerance(1e-5, 1e-6),
    "gradients": Tolerance(1e-5, 1e-4),
}


@dataclass(frozen=True)
class Difference:
    """The first place where a rank saw something else."""

    rank: int
    at: str
    what: str
    text: str

    @property
    def signature(self) -> str:
        """The same for findings that are likely the same: no names and numbers."""
        statement = self.at.split("/")[-1]
        text = self.text if self.what in ("error", "hang", "crash") else ""
        return re.sub(r"\d+", "N", f"{self.what} at {statement} {text}").strip()[:160]

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "rank": self.rank,
            "at": self.at,
            "what": self.what,
            "text": self.text,
            "signature": self.signature,
        }


def is_exact(program: Program) -> bool:
    """Whether no gradient of the program is rounded: all divisors are powers of two."""
    divisors = (program.ranks, program.setting("gradient_accumulation_steps", 1))
    return all(divisor & (divisor - 1) == 0 for divisor in divisors)


def first_difference(
    program: Program, reference: list[Seen], ranks: list[Seen | None]
) -> Difference | None:
    """Of the rank that differs first; None: all ranks saw what they have to."""
    found = [
        it
        for rank, seen in enumerate(ranks)
        if (it := difference_of_rank(program, rank, reference[rank], seen))
    ]
    places = [observation["at"] for observation in reference[0]]
    order = {at: index for index, at in enumerate(places)}
    return min(found, key=lambda it: order.get(it.at, len(order)), default=None)


def difference_of_rank(
    program: Program, rank: int, expected: Seen, seen: Seen | None
) -> Difference | None:
    """Observation by observation."""
    if seen is None:
        return None  # what the pool says about it is the finding
    for at, observation in enumerate(seen):
        if observation["what"] == "error":
            values = observation["values"]
            text = f"{values['type']}: {values['text']}"
            return Difference(rank, observation["at"], "error", text)
        if at >= len(expected) or key_of(observation) != key_of(expected[at]):
            return Difference(rank, observation["at"], observation["what"], "not expected here")
        if text := difference_of_values(program, expected[at], observation):
            return Difference(rank, observation["at"], observation["what"], text)
    return None


def key_of(observation: dict[str, Any]) -> tuple[str, str, str]:
    """What has to be the same on both sides."""
    return observation["at"], observation["what"], observation["engine"]


def difference_of_values(
    program: Program, expected: dict[str, Any], seen: dict[str, Any]
) -> str | None:
    """The first name whose numbers differ; a name without numbers is as one with zeros."""
    what = expected["what"]
    is_bitwise = what == "gradients" and is_exact(program)
    tolerance = BITWISE if is_bitwise else TOLERANCES[what]
    for name in expected["values"] | seen["values"]:
        due, got = expected["values"].get(name), seen["values"].get(name)
        if due is None and got is None:
            continue
        if what == "optimizer_state" and name not in seen["values"]:
            continue  # which of it an engine lets users read differs
        count = len(due if due is not None else got)
        due, got = due or [0.0] * count, got or [0.0] * count
        if len(due) != len(got) or not all(map(tolerance.allows, got, due)):
            return f"{name} is {short(got)}, not {short(due)}"
    return None


def short(numbers: list[float]) -> str:
    """At most four of them."""
    shown = ", ".join(f"{number:.6g}" for number in numbers[:4])
    return f"[{shown}{', ...' if len(numbers) > 4 else ''}]"


def has_reference(ranks: list[Seen | None]) -> bool:
    """Whether plain PyTorch did the whole program."""
    return all(seen and seen[-1]["what"] != "error" for seen in ranks)
