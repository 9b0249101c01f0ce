"""Every setting of ZeroConfig is asked somewhere: a setting that is only read has no effect, and
docs/reference/config.md would call it modelled. Such keys are `ignored` in engine/config/config_keys.cpp."""

import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
HEADERS = [
    "include/zeroproof/engine/zero_config.h",
    "include/zeroproof/engine/schedule/scheduler_config.h",
]
READERS = "engine/config/"
# Part of the reader's folder, but it decides what an engine is made from.
RULES = ["engine/config/validate.cpp", "engine/config/run_config.cpp"]
STRUCT = re.compile(r"^struct (\w+) \{$(.*?)^\};$", re.M | re.S)
FIELD = re.compile(r"^  [\w:<>, ]+ (\w+)(?: = [^;()]*)?;", re.M)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def fields():
    for header in HEADERS:
        for name, body in STRUCT.findall(read(header)):
            for field in FIELD.findall(body):
                yield name, field


def sources_that_ask():
    for folder, _, names in os.walk(os.path.join(ROOT, "engine")):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), ROOT)
            if name.endswith((".h", ".cpp", ".cu")) and not path.startswith(READERS):
                yield path
    yield from RULES


class ConfigUse(unittest.TestCase):
    def test_each_setting_is_asked_outside_of_its_reader(self):
        # The headers hold accessors (master_dtype(), is_offloaded()) beside the fields.
        text = "\n".join(read(path) for path in sources_that_ask())
        accessors = "\n".join(re.findall(r"\{ return .*; \}|return .*;", read(HEADERS[0])))
        found = list(fields())
        self.assertGreater(len(found), 60)
        unasked = [
            f"{struct}.{field}"
            for struct, field in found
            if not re.search(rf"(?:\.|->|::){field}\b", text)
            and not re.search(rf"\b{field}\b", accessors)
        ]
        self.assertEqual(unasked, [], "settings that are read and asked nowhere in engine/")


if __name__ == "__main__":
    unittest.main()
