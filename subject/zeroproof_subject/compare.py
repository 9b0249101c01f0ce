"""What an engine's ranks saw against what plain PyTorch has to see."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from zeroproof_subject import signature
from zeroproof_subject.contributions import MOST
from zeroproof_subject.program import Program

Seen = list[dict[str, Any]]
LARGEST_FLOAT16 = 65504.0


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
    signature: str
    engine: str = ""
    name: str = ""  # of the tensor
    expected: tuple[float, ...] = ()
    observed: tuple[float, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


# Of 16-bit parameters.
ROUNDED = {"loss": Tolerance(5e-2, 2.0), "parameters": Tolerance(1e-2, 1e-2)}
# The same, where gradients are divided by a number that is no power of two.
ROUNDED_TWICE = ROUNDED | {
    "gradients": Tolerance(2e-2, 2e-2),
    "optimizer_state": Tolerance(4e-2, 1e-2),
}


def tolerance_of(program: Program, what: str) -> Tolerance:
    """Of an observation."""
    if what == "refusal" or (what == "gradients" and is_exact(program)):
        return BITWISE
    if program.dtype == "fp32":
        return TOLERANCES[what]
    rounded = ROUNDED if is_exact(program) else ROUNDED_TWICE
    return rounded.get(what, TOLERANCES[what])


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
        if seen is not None and (it := difference_of_rank(program, rank, reference[rank], seen))
    ]
    places = [observation["at"] for observation in reference[0]]
    order = {at: index for index, at in enumerate(places)}
    first = min(found, key=lambda it: order.get(it.at, len(order)), default=None)
    if first is None or first.what in signature.FAILURES or not disagree(first, ranks):
        return first
    # How much more or less than the mean of all a rank has depends on its data.
    return replace(first, signature=f"{first.signature.rpartition(': ')[0]}: ranks disagree")


def disagree(difference: Difference, ranks: list[Seen | None]) -> bool:
    """Whether ranks saw different numbers where all have to see the same."""
    if difference.what == "loss":
        return False
    key = (difference.at, difference.what, difference.engine)
    values = [one["values"] for seen in ranks if seen for one in seen if key_of(one) == key]
    return any(one != values[0] for one in values)


def difference_of_rank(
    program: Program, rank: int, expected: Seen, seen: Seen
) -> Difference | None:
    """Observation by observation."""
    for index, observation in enumerate(seen):
        at, what = observation["at"], observation["what"]
        if what == "error":
            return failure(rank, at, "error", observation["values"])
        if index >= len(expected) or key_of(observation) != key_of(expected[index]):
            text = "not expected here"
            kind = f"{what} at {at.split('/')[-1]}: {text}"
            return Difference(rank, at, what, text, kind, observation["engine"])
        if observation["values"] is None:
            continue
        if found := difference_of_values(program, rank, expected[index], observation):
            return found
    return None


def failure(rank: int, at: str, what: str, values: dict[str, str]) -> Difference:
    """An error that was raised, a crash or a hang."""
    text = ": ".join(it for it in (values.get("type", ""), values["text"]) if it)
    statement = values.get("statement", at.split("/")[-1])
    kind = signature.of_failure(what, statement, text, values.get("frame", ""))
    return Difference(rank, at, what, text, kind)


def key_of(observation: dict[str, Any]) -> tuple[str, str, str]:
    """What has to be the same on both sides."""
    return observation["at"], observation["what"], observation["engine"]


def difference_of_values(
    program: Program, rank: int, expected: dict[str, Any], seen: dict[str, Any]
) -> Difference | None:
    """The names whose numbers differ; a name without numbers is as one with zeros."""
    what, at, engine = expected["what"], expected["at"], expected["engine"]
    tolerance = tolerance_of(program, what)
    wrong: dict[str, tuple[list[float], list[float]]] = {}
    for name in expected["values"] | seen["values"]:
        due, got = expected["values"].get(name), seen["values"].get(name)
        if due is None and got is None:
            continue
        if what == "optimizer_state" and name not in seen["values"]:
            continue  # which of it an engine lets users read differs
        count = len(due if due is not None else got)
        due, got = due or [0.0] * count, got or [0.0] * count
        if len(due) != len(got) or not all(map(tolerance.allows, got, due)):
            wrong[name] = due, got
    if not wrong:
        return None
    relation = "other numbers"
    if what == "gradients":
        relation = signature.relation_of(expected["values"], seen["values"], set(wrong))
    elif what == "refusal":
        relation = "not refused"
    name, (due, got) = next(iter(wrong.items()))
    text = f"{name} is {short(got)}, not {short(due)}"
    kind = signature.of_numbers(program, at, what, engine, relation)
    return Difference(rank, at, what, text, kind, engine, name, tuple(due), tuple(got))


def short(numbers: list[float]) -> str:
    """At most four of them."""
    shown = ", ".join(f"{number:.6g}" for number in numbers[:4])
    return f"[{shown}{', ...' if len(numbers) > 4 else ''}]"


def overflows(program: Program) -> bool:
    """Whether the first loss scale is too large for float16: what becomes of such a step is not judged."""
    if not program.setting("fp16/enabled", False):
        return False
    dynamic = 2.0 ** program.setting("fp16/initial_scale_power", 16)
    return (program.setting("fp16/loss_scale", 0) or dynamic) * MOST["fp16"] > LARGEST_FLOAT16


def has_reference(ranks: list[Seen | None]) -> bool:
    """Whether plain PyTorch did the whole program."""
    return all(seen and seen[-1]["what"] != "error" for seen in ranks)
