"""Finds what can be mutated by rule in a function's body: statements that can be left out or change
places with the next one, conditions that can be negated, constants that can be others."""

import math
import re
from dataclasses import dataclass

from cpp_functions import blanked, closing

# Assertions are no behaviour; what is static or constant is made once, and not by a mutant.
_KEPT = re.compile(r"(?:ZP_\w+\s*\(|static\b|constexpr\b|using\b|static_assert\b|struct\b|class\b|enum\b|case\b)")
_DECLARES = re.compile(r"(?:const\b|auto\b|typename\b|unsigned\b|struct\b|class\b|enum\b|using\b|return\b|goto\b|new\b)")
_PATH = re.compile(r"(?:::)?\w+(?:<[^;{}()]*?>)?(?:::~?\w+(?:<[^;{}()]*?>)?)*")
_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*(?:mutable|noexcept)?\s*"
                     r"(?:->\s*[\w:<>&*, ]+?)?\s*\{")
_NUMBER = re.compile(r"(?<![\w.'])(?:true|false|\d[\d']*(?:\.\d+)?(?:[eE][-+]?\d+)?(?:[uUlL]+|[fF])?)(?![\w.'])")
_TEMPLATE = re.compile(r"(?<=\w)<[^;{}<>]*>")


@dataclass(frozen=True)
class Site:
    """One place that a mutant changes."""

    rule: str  # "delete", "negate", "swap" or "constant"
    begin: int  # in the text
    end: int
    other: int = 0  # swap: where the next statement ends


class _Body:
    def __init__(self, text, code):
        self.text, self.code = text, code
        self.sites = []

    def block(self, place, end):
        """The statements between two braces."""
        before = None  # the expression statement that stands just before
        while True:
            place = self.skip(place, end)
            if place >= end:
                return
            begin, place, is_plain = self.statement(place, end)
            if is_plain and before is not None:
                self.sites.append(Site("swap", before[0], before[1], place))
            before = (begin, place) if is_plain else None

    def skip(self, place, end):
        while place < end and (self.code[place].isspace() or self.code[place] == ";"):
            place += 1
        return place

    def statement(self, place, end):
        """One statement from there on: where it begins and ends, and whether it is a plain one."""
        begin = place
        if self.code[place] == "{":
            close = closing(self.code, place)
            self.block(place + 1, close)
            return begin, close + 1, False
        word = re.match(r"\w+", self.code[place:end])
        handler = getattr(self, "on_" + word.group(), None) if word else None
        if handler:
            return begin, handler(place, end), False
        label = re.match(r"(?:case\b[^;{}?]*?(?<!:):(?!:)|default\s*:)", self.code[place:end])
        if label:
            return begin, place + label.end(), False
        return self.simple(place, end)

    def part(self, place, end):
        """A statement that belongs to the one before it."""
        return self.statement(self.skip_blanks(place), end)[1]

    def skip_blanks(self, place):
        while self.code[place].isspace():
            place += 1
        return place

    def on_if(self, place, end):
        opening = self.code.index("(", place)
        close = closing(self.code, opening)
        condition = self.code[opening + 1 : close]
        is_fixed = self.code[place:opening].split() == ["if", "constexpr"]
        if not is_fixed and not self.declares(condition) and "ZP_" not in condition:
            self.sites.append(Site("negate", opening + 1, close))
        if not is_fixed:
            self.inner(opening + 1, close)
        place = self.part(close + 1, end)
        after = re.match(r"\s*else\b", self.code[place:end])
        return self.part(place + after.end(), end) if after else place

    def on_while(self, place, end):
        opening = self.code.index("(", place)
        return self.part(closing(self.code, opening) + 1, end)

    on_for = on_switch = on_while

    def on_do(self, place, end):
        place = self.part(place + 2, end)
        return self.code.index(";", closing(self.code, self.code.index("(", place))) + 1

    def on_try(self, place, end):
        place = self.part(place + 3, end)
        while re.match(r"\s*catch\b", self.code[place:end]):
            place = self.part(closing(self.code, self.code.index("(", place)) + 1, end)
        return place

    @staticmethod
    def declares(condition):
        return ";" in condition or re.match(r"\s*(?:const\b|auto\b|[\w:<>]+\s*[*&]*\s*(?:const\s+)?[*&]*\w+\s*=[^=])",
                                            condition) is not None

    def simple(self, begin, end):
        """A statement up to its semicolon."""
        place = begin
        while self.code[place] != ";":
            place = closing(self.code, place) if self.code[place] in "([{" else place
            place += 1
        place += 1
        code = self.code[begin:place]
        if _KEPT.match(code):
            return begin, place, False
        is_plain = self.is_plain(code)
        is_jump = re.match(r"(?:return|continue|throw\b.*)\s*;", code, re.S) is not None
        if is_plain or is_jump:
            self.sites.append(Site("delete", begin, place))
        self.inner(begin, place)
        return begin, place, is_plain

    @staticmethod
    def is_plain(code):
        """Whether it is an expression and not a declaration."""
        if _DECLARES.match(code) or re.match(r"(?:throw|break|continue|co_\w+)\b", code):
            return False
        if re.match(r"[*(+-]|delete\b", code):
            return True
        path = _PATH.match(code)
        if not path:
            return False
        rest = code[path.end() :].lstrip()
        return re.match(r"[(.\[]|->|[-+*/|&^%]?=[^=]|<<|\+\+|--", rest) is not None

    def inner(self, begin, end):
        """Constants of an expression, and the bodies of its lambdas."""
        code = self.code[begin:end]
        for found in _LAMBDA.finditer(code):
            opening = begin + found.end() - 1
            close = closing(self.code, opening)
            if close < end and not self.is_inside_lambda(begin, opening):
                self.block(opening + 1, close)
        self.constants(begin, end)

    def is_inside_lambda(self, begin, place):
        for found in _LAMBDA.finditer(self.code[begin:place]):
            if closing(self.code, begin + found.end() - 1) > place:
                return True
        return False

    def constants(self, begin, end):
        code = self.code[begin:end]
        while True:  # template arguments, the innermost first
            plain = _TEMPLATE.sub(lambda found: " " * len(found.group()), code)
            if plain == code:
                break
            code = plain
        for found in _NUMBER.finditer(code):
            place = begin + found.start()
            is_braced = re.search(r"\{\s*$", code[: found.start()]) and re.match(r"\s*\}", code[found.end() :])
            is_hex = re.search(r"\b0[xX][\da-fA-F.]*[pP][-+]?$", code[: found.start()])
            if is_braced or is_hex or self.is_inside_lambda(begin, place) or "ZP_" in self.line_of(place):
                continue
            self.sites.append(Site("constant", place, begin + found.end()))

    def line_of(self, place):
        return self.code[self.code.rfind("\n", 0, place) + 1 : self.code.find("\n", place)]


def sites(text, function):
    """What can be mutated in the body of a function of this text, in the order of its places."""
    if re.search(r"\b(?:constexpr|consteval)\b", text[function.start : function.body]):
        return []
    body = _Body(text, blanked(text))
    body.block(function.body + 1, function.end - 1)
    return sorted(set(body.sites), key=lambda site: (site.begin, site.rule, site.end))


def other_constant(text):
    """Another constant of the same type."""
    if text in ("true", "false"):
        return "false" if text == "true" else "true"
    digits = re.match(r"[\d'.eE+-]+", text).group()
    rest = text[len(digits) :]
    if "." in digits or "e" in digits.lower():
        value = float(digits.replace("'", ""))
        other = value * 2 + 1
        return f"{value / 2 if math.isinf(other) else other!r}{rest}"
    return f"{int(digits.replace(chr(39), '')) + 1}{rest}"
