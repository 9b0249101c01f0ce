"""The tables of docs/reference/program.md, made of props/program/program.schema.json.

python3 tests/docs/program_page.py rewrites them.
"""

import json
import os
import re

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PAGE = os.path.join(ROOT, "docs", "reference", "program.md")
SCHEMA = os.path.join(ROOT, "props", "program", "program.schema.json")
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.S)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def kind_names(schema, definition):
    return [choice["required"][0] for choice in schema["$defs"][definition]["oneOf"]]


def member_text(name, member, is_needed):
    """trained (all, frozen): which parameters the optimizer trains"""
    words = ", ".join(member.get("enum", []))
    default = member.get("default")
    notes = [words] if words else []
    if isinstance(default, (int, float)) and not isinstance(default, bool) and default != 0:
        notes.append(f"default {default}")
    elif default is True:
        notes.append("default true")
    text = f"**{name}**" if is_needed else name
    text += f" ({'; '.join(notes)})" if notes else ""
    meaning = member.get("description", "")
    return f"{text}: {meaning}" if meaning else text


def row(schema, name):
    definition = schema["$defs"][name]
    members = [
        member_text(key, member, key in definition["required"])
        for key, member in definition["properties"].items()
    ]
    return f"| `{name}` | {definition['description']} | {' · '.join(members)} |"


def table(schema, which):
    names = which.split("_and_") if which not in ("statements", "modules") else []
    if which == "statements":
        names = kind_names(schema, "statement")
    if which == "modules":
        names = kind_names(schema, "module")
    rows = [row(schema, name) for name in names]
    return "\n".join(["| key | what it is | members |", "|---|---|---|", *rows, ""])


def page_with_tables(page, schema):
    return TABLE.sub(lambda found: found[1] + table(schema, found[2]) + found[3], page)


def main():
    page = page_with_tables(read(PAGE), json.loads(read(SCHEMA)))
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()
