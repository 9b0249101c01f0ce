#!/usr/bin/env python3
"""weave.py OUT ROOT FAULTS...: copies of the engine's sources with faults woven in.

Each function that a fault touches gets one body a fault, chosen by mutation::active_fault(); the
default is the body as it stands. OUT gets ROOT's files under their own names, and fault_table.cpp.
With --list: prints the sources that have to be compiled in place of the library's, one a line.
Exit code 1 with a line that names fault, function and text where a fault does not fit the source."""

import argparse
import os
import re
import sys
from collections import defaultdict
from dataclasses import dataclass

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp_functions  # noqa: E402
from fault_text import FaultError, read_faults  # noqa: E402

INCLUDE = '#include "props/mutation/active_fault.h"\n'


@dataclass(frozen=True)
class Line:
    """A line of a definition, and the line of the source that it counts as."""

    text: str
    origin: int


@dataclass(frozen=True)
class Edit:
    """A hunk where it belongs: lines of the source from `first` to before `last`."""

    first: int
    last: int
    new: tuple


def same(one, other):
    return one.strip() == other.strip()


class Source:
    """One file of the tree, and what is woven into it."""

    def __init__(self, root, path):
        self.path = path
        self.full = os.path.join(root, path)
        with open(self.full, encoding="utf-8") as file:
            self.text = file.read()
        self.lines = self.text.split("\n")
        self.functions = cpp_functions.functions(self.text)
        self.variants = defaultdict(dict)  # function -> {number of a fault: its definition}
        self.helpers = defaultdict(list)  # function -> lines that stand before it

    def line_of(self, place):
        return self.text.count("\n", 0, place)

    def named(self, fault, part):
        found = [one for one in self.functions
                 if one.name == part.function or one.name.endswith("::" + part.function)]
        if not found:
            raise FaultError(f"fault {fault.id}: {self.path} defines no function {part.function} "
                             f"({fault.place})")
        return found

    def place(self, fault, part, hunk, candidates):
        """The one function and edit that the hunk means."""
        fits = []
        for function in candidates:
            first, last = self.line_of(function.start), self.line_of(function.end) + 1
            for at in range(first, last - len(hunk.old) + 1):
                if all(same(self.lines[at + i], old) for i, old in enumerate(hunk.old)):
                    fits.append((function, Edit(at, at + len(hunk.old), tuple(hunk.new))))
        if len(fits) != 1:
            count = "not" if not fits else f"{len(fits)} times"
            raise FaultError(f"fault {fault.id}: the lines to replace stand {count} in {self.path}: "
                             f"{part.function}:\n  " + "\n  ".join(hunk.old) + f"\n({fault.place})")
        return fits[0]

    def add(self, number, fault, part):
        candidates = self.named(fault, part)
        if part.is_before:
            for hunk in part.hunks:
                self.helpers[candidates[0]] += hunk.new
            return
        edits = defaultdict(list)
        for hunk in part.hunks:
            function, edit = self.place(fault, part, hunk, candidates)
            edits[function].append(edit)
        for function, of_function in edits.items():
            self.pending(number, function).extend(of_function)

    def pending(self, number, function):
        return self.variants[function].setdefault(number, [])

    def edited(self, fault, function, edits):
        """The definition with the edits, as lines."""
        edits = sorted(edits, key=lambda edit: edit.first)
        for one, other in zip(edits, edits[1:]):
            if other.first < one.last:
                raise FaultError(f"fault {fault.id}: two of its parts replace the same lines of "
                                 f"{self.path}: {function.name} ({fault.place})")
        lines, at = [], self.line_of(function.start)
        for edit in edits:
            lines += [Line(self.lines[i], i + 1) for i in range(at, edit.first)]
            lines += [Line(text, min(edit.first + i, edit.last - 1) + 1)
                      for i, text in enumerate(edit.new)]
            at = edit.last
        return lines + [Line(self.lines[i], i + 1)
                        for i in range(at, self.line_of(function.end) + 1)]

    def body(self, fault, function, edits):
        """The lines of a variant's body, from its opening to its closing brace."""
        lines = self.edited(fault, function, edits)
        text = "\n".join(line.text for line in lines)
        begin = function.start - self.text.rfind("\n", 0, function.start) - 1
        head = re.sub(r"\s", "", self.text[function.start : function.body])
        try:
            variant = next(one for one in cpp_functions.functions(" " * begin + text[begin:])
                           if one.start >= begin)
        except (StopIteration, ValueError) as error:
            raise FaultError(f"fault {fault.id}: {self.path}: {function.name} is no function any "
                             f"more ({fault.place})") from error
        if re.sub(r"\s", "", text[variant.start : variant.body]) != head:
            raise FaultError(f"fault {fault.id}: it changes the signature or the initialisers of "
                             f"{self.path}: {function.name}; only its body may change ({fault.place})")
        return self.cut(lines, variant.body, variant.end)

    @staticmethod
    def cut(lines, begin, end):
        kept, place = [], 0
        for line in lines:
            first, last = max(begin - place, 0), min(end - place, len(line.text))
            if first < last or (place >= begin and place < end):
                kept.append(Line(line.text[first:max(last, first)], line.origin))
            place += len(line.text) + 1
        return kept

    def numbered(self, lines):
        """The lines with directives wherever the compiler would count otherwise, but inside
        parentheses, where a macro may stand."""
        text, expected, depth = "", None, 0
        for line in lines:
            if line.origin != expected and depth == 0:
                text += f'#line {line.origin} "{self.full}"\n'
                expected = line.origin
            text += line.text + "\n"
            expected = expected + 1 if expected is not None else None
            code = cpp_functions.blanked(line.text)
            depth = max(depth + code.count("(") - code.count(")"), 0)
        return text

    def schema(self, function, faults):
        """The body of a touched function: all its variants, and itself."""
        first = self.line_of(function.body)
        whole = [Line(self.lines[i], i + 1)
                 for i in range(first, self.line_of(function.end) + 1)]
        offset = self.text.rfind("\n", 0, function.body) + 1
        pristine = self.cut(whole, function.body - offset, function.end - offset)
        text = "{\nswitch (::zeroproof::mutation::active_fault()) {\n"
        for number, edits in sorted(self.variants[function].items()):
            text += f"case {number}:\n"
            text += self.numbered(self.body(faults[number - 1], function, edits)) + "break;\n"
        text += "default:\n" + self.numbered(pristine) + "break;\n}\n}\n"
        return text + f'#line {self.line_of(function.end) + 1} "{self.full}"\n'

    def woven(self, faults):
        """The whole file."""
        text, at = "", 0
        for function in self.functions:
            if function not in self.variants and function not in self.helpers:
                continue
            text += self.text[at : function.start]
            at = function.start
            if function in self.helpers:
                line = self.line_of(function.start) + 1
                text += "\n" + "\n".join(self.helpers[function])
                text += f'\n#line {line} "{self.full}"\n'
            if function in self.variants:
                text += self.text[at : function.body] + self.schema(function, faults)
                at = function.end
        text += self.text[at:]
        return self.included(text)

    def included(self, text):
        """With the header of what the variants ask, and those that they include themselves."""
        own = [line for lines in self.helpers.values() for line in lines if line.startswith("#include")]
        text = "\n".join(line for line in text.split("\n") if line not in own) if own else text
        include = INCLUDE + "".join(line + "\n" for line in own)
        once = "#pragma once\n"
        line, rest = 1, text
        if self.path.endswith(".h"):
            begin = text.index(once) + len(once)
            line, include, rest = text.count("\n", 0, begin) + 1, text[:begin] + include, text[begin:]
        return include + f'#line {line} "{self.full}"\n' + rest


def read_all(paths):
    faults, known = [], {}
    for path in sorted(paths):
        with open(path, encoding="utf-8") as file:
            for fault in read_faults(os.path.basename(path), file.read()):
                if fault.id in known:
                    raise FaultError(f"fault {fault.id}: it stands twice: {known[fault.id]} and "
                                     f"{fault.place}")
                known[fault.id] = fault.place
                faults.append(fault)
    return sorted(faults, key=lambda fault: fault.id)


def sources_of(root, faults):
    """By path: each touched source with its faults, numbered from 1 in the order of their ids."""
    sources = {}
    for number, fault in enumerate(faults, 1):
        for part in fault.parts:
            if part.file not in sources:
                if not os.path.isfile(os.path.join(root, part.file)):
                    raise FaultError(f"fault {fault.id}: there is no file {part.file} ({fault.place})")
                sources[part.file] = Source(root, part.file)
            sources[part.file].add(number, fault, part)
    return sources


def includers(root, headers):
    """The engine's sources that include one of these headers, directly or through others."""
    if not headers:
        return set()
    includes = {}
    for folder, _, names in os.walk(os.path.join(root, "engine")):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith((".h", ".cpp")) and "/runtime/cuda/" not in path:
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    includes[path] = set(re.findall(r'#include "([^"]+)"', file.read()))
    reached = set(headers)
    while True:
        more = {path for path, of_path in includes.items() if of_path & reached} - reached
        if not more:
            return {path for path in reached if path.endswith(".cpp")}
        reached |= more


def list_sources(root, touched):
    headers = [path for path in touched if path.endswith(".h")]
    for path in sorted(touched | includers(root, headers)):
        print("woven " + path if path in touched else path)


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def table(faults):
    """The faults as C++ data, in the order of their numbers."""
    text = ("// Generated by props/mutation/weaver/weave.py.\n"
            '#include "props/mutation/fault_table.h"\n\nnamespace zeroproof::mutation {\n\n'
            "std::span<const WovenFault> fault_table() {\n"
            "  static constexpr WovenFault kFaults[] = {\n")
    for number, fault in enumerate(faults, 1):
        fields = [f".number = {number}", f".id = {literal(fault.id)}",
                  f".sentence = {literal(fault.sentence)}",
                  f".is_woven = {'true' if fault.parts else 'false'}"]
        fields += [f".{key} = {literal(fault.keys[key])}"
                   for key in ("properties", "policy", "quirks", "api", "larger", "decorator", "reason")
                   if key in fault.keys]
        text += "      {" + ",\n       ".join(fields) + "},\n"
    return text + "  };\n  return kFaults;\n}\n\n}  // namespace zeroproof::mutation\n"


def write(path, text):
    """Only where it differs, so that unchanged output causes no rebuild."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except OSError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def write_all(out, texts):
    """The files of a folder, by their paths in it; what was made before and is not any more goes."""
    for path, text in texts.items():
        write(os.path.join(out, path), text)
    for folder, _, names in os.walk(out):
        for name in names:
            if os.path.relpath(os.path.join(folder, name), out) not in texts:
                os.remove(os.path.join(folder, name))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("out")
    parser.add_argument("root")
    parser.add_argument("faults", nargs="*")
    options = parser.parse_args(arguments)
    try:
        faults = read_all(options.faults)
        if options.list:
            list_sources(options.root, {part.file for fault in faults for part in fault.parts})
            return 0
        sources = sources_of(options.root, faults)
        woven = {path: source.woven(faults) for path, source in sources.items()}
        write_all(options.out, woven | {"fault_table.cpp": table(faults)})
    except FaultError as error:
        print(f"weave.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
