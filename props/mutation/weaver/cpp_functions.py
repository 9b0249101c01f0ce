"""Finds the function definitions of a C++ source, without a compiler: their qualified names (without
namespaces), where a definition begins, and the braces of its body."""

import re
from dataclasses import dataclass

_CLASS = re.compile(r"\b(?:class|struct|union)\s+(?:\[\[[^\]]*\]\]\s*)?((?:\w+::)*\w+)")
_NAME = re.compile(r"((?:\w+(?:<[^()]*>)?\s*::\s*)*(?:operator\s*(?:\(\)|[^\s\w(]+|[\w:]+)|~?\w+))\s*$")
_NOT_NAMES = {"decltype", "noexcept", "alignas", "requires", "explicit", "catch", "if", "for",
              "while", "switch", "return", "static_assert"}


@dataclass(frozen=True)
class Function:
    name: str  # "Engine::Core::epilogue": classes, no namespaces
    start: int  # of the definition, in characters; comments before it are not a part of it
    body: int  # of its opening brace
    end: int  # one past its closing brace


def blanked(text):
    """The text with comments, literals and directives as blanks: every character keeps its place."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def closing(code, opening):
    """The place of the brace, bracket or parenthesis that closes the one at `opening`."""
    pairs = {"{": "}", "(": ")", "[": "]"}
    stack = []
    for place in range(opening, len(code)):
        char = code[place]
        if char in pairs:
            stack.append(pairs[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack:
                return place
    raise ValueError("a brace is never closed")


def _name_of(head):
    """The name of the function whose head this is; "": it is none."""
    angles = 0
    place = 0
    while place < len(head):
        char = head[place]
        if head.startswith("operator", place) and not head[place - 1 : place].isalnum():
            rest = re.match(r"operator\s*(\(\)|[^\s\w(]+|[\w:\s]+?(?=\())", head[place:])
            place += rest.end() if rest else len("operator")
            if rest and head[place:].lstrip().startswith("("):
                found = _NAME.search(head[:place])
                return re.sub(r"\s", "", found.group(1)) if found else ""
            continue
        if char == "<":
            angles += 1
        elif char == ">" and head[place - 1 : place] not in ("-", "="):
            angles = max(angles - 1, 0)
        elif char == "=" and angles == 0:
            return ""
        elif char == "(" and angles == 0:
            found = _NAME.search(head[:place])
            if found and found.group(1) not in _NOT_NAMES:
                return re.sub(r"<.*?>|\s", "", found.group(1))
            place = closing(head, place)
        place += 1
    return ""


def _is_member_value(code, start, brace):
    """Whether the brace gives a member its value, as in `Core() : context_{context} {`."""
    head = code[start:brace]
    has_list = re.search(r"\)\s*(?:noexcept\s*)?:(?!:)", head)
    return bool(has_list) and bool(re.search(r"[\w>]$", head))


class _Scanner:
    def __init__(self, code):
        self.code = code
        self.functions = []

    def scan(self, place, end, scope):
        """Between two braces of a namespace or a class."""
        start = place
        while place < end:
            char = self.code[place]
            if char in "([":
                place = closing(self.code, place)
            elif char in ";}":
                start = place + 1
            elif char == ":" and re.search(r"(?:^|\s)(?:public|private|protected)\s*$",
                                           self.code[start:place]):
                start = place + 1
            elif char == "{":
                place, start = self.block(start, place, scope)
            place += 1

    def block(self, start, brace, scope):
        """What opens there; returns where to go on, and where what comes next may begin."""
        end = closing(self.code, brace)
        head = self.code[start:brace]
        begin = start + len(head) - len(head.lstrip())
        head = head.strip()
        if re.match(r"(?:inline\s+)?namespace\b|extern\b\s*$", head):
            self.scan(brace + 1, end, scope)
            return end, end + 1
        name = _name_of(head)
        if name:
            if _is_member_value(self.code, start, brace):
                return end, start
            self.functions.append(Function("::".join(scope + [name]), begin, brace, end + 1))
            return end, end + 1
        found = None if re.search(r"\benum\b|=", head) else _CLASS.search(head)
        if found:
            self.scan(brace + 1, end, scope + [found.group(1)])
        return end, end + 1 if found else start


def functions(text):
    """All function definitions of a source, in its order; those in a function are its body."""
    code = blanked(text)
    scanner = _Scanner(code)
    scanner.scan(0, len(code), [])
    return scanner.functions


def named(text, name):
    """Those of that name; `name` may leave out classes around it."""
    return [one for one in functions(text) if one.name == name or one.name.endswith("::" + name)]
