"""docs/reference/program.md has the tables of the schema; the schema accepts and refuses what the reader does."""

import copy
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program_page

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAMS = os.path.join(program_page.ROOT, "tests", "data", "programs")
SCHEMA = json.loads(program_page.read(program_page.SCHEMA))


def document_of(name):
    return json.loads(program_page.read(os.path.join(PROGRAMS, name)))


def with_value(document, pointer, value):
    """As RFC 6902's add, of an object's member or in place of a list's item."""
    *path, last = [part.replace("~1", "/") for part in pointer.split("/")[1:]]
    changed = copy.deepcopy(document)
    place = changed
    for part in path:
        place = place[int(part) if isinstance(place, list) else part]
    place[int(last) if isinstance(place, list) else last] = value
    return changed


class ProgramPage(unittest.TestCase):
    def test_has_the_tables_of_the_schema(self):
        page = program_page.read(program_page.PAGE)
        self.assertGreaterEqual(len(program_page.TABLE.findall(page)), 3)
        self.assertEqual(page, program_page.page_with_tables(page, SCHEMA),
                         "run python3 tests/docs/program_page.py")

    def test_names_every_statement_and_module_once_in_a_table(self):
        page = program_page.read(program_page.PAGE)
        for definition in ("statement", "module"):
            for name in program_page.kind_names(SCHEMA, definition):
                self.assertEqual(1, len(re.findall(rf"^\| `{name}` \|", page, re.M)), name)


@unittest.skipIf(jsonschema is None, "needs the Python package jsonschema")
class ProgramSchema(unittest.TestCase):
    def setUp(self):
        self.validator = jsonschema.Draft202012Validator(SCHEMA)

    def test_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_accepts_programs(self):
        for name in sorted(os.listdir(PROGRAMS)):
            if name.endswith(".json") and name != "wrong_documents.json":
                self.validator.validate(document_of(name))

    def test_refuses_what_the_reader_refuses(self):
        document = document_of("every_kind.json")
        for row in document_of("wrong_documents.json"):
            wrong = with_value(document, row["at"], row["value"])
            self.assertEqual(self.validator.is_valid(wrong), row.get("schema_accepts", False), row)

    def test_accepts_the_examples_of_the_page(self):
        examples = re.findall(r"```json\n(.*?)```", program_page.read(program_page.PAGE), re.S)
        self.assertTrue(examples)
        for example in examples:
            self.validator.validate(json.loads(example))


if __name__ == "__main__":
    unittest.main()
