"""What props/mutation/weaver makes of faults, and what it refuses. ctest runs it."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "props", "mutation", "weaver"))
import cpp_functions  # noqa: E402
import mutate  # noqa: E402
import statements  # noqa: E402
import weave  # noqa: E402

SOURCE = """\
// A source.
#include "engine/a.h"

namespace zeroproof {
namespace {

constexpr int kAll[] = {1, 2};  // not a function: {

// The text of "{" and '{'.
std::string brace(int count) { return count > 0 ? "{" : R"x(})x"; }

template <class T>
std::function<void()> later(const T& value) {
  return [value] { use(value, '{'); };
}

class Inner final : public Base {
 public:
  explicit Inner(int size) : size_{size}, twice_(size * 2) {
    grow();
  }
  bool operator==(const Inner& other) const { return size_ == other.size_; }
  int size() const override { return size_; }

 private:
  int size_;
};

}  // namespace

Engine::Core::Core(int size)
    : size_{size},
      names_({"a", "b"}) {
  begin();
}

int Engine::Core::sum(int one, int other) {
  int all = one;
  all += other;
  if (all > 1'000'000) return 0;
  return all;
}

double Engine::Core::sum(double one) {
  return one + 0.5;
}

}  // namespace zeroproof
"""

SUM = """\
    @ engine/a.cpp: Engine::Core::sum
    -  all += other;
    +  all -= other;
    """


class Weaving(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = os.path.join(self.folder.name, "tree")
        self.out = os.path.join(self.folder.name, "out")
        self.write("engine/a.cpp", SOURCE)

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        return full

    def weave(self, *blocks, options=()):
        """The exit code, and what was said."""
        text = "\n\n".join(textwrap.dedent(block).strip("\n") for block in blocks)
        faults = self.write("x.faults", text + "\n")
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = weave.main([*options, self.out, self.root, faults])
        return code, said.getvalue()

    def woven(self, *blocks, path="engine/a.cpp"):
        code, said = self.weave(*blocks)
        self.assertEqual(code, 0, said)
        with open(os.path.join(self.out, path), encoding="utf-8") as file:
            return file.read()

    def refused(self, *blocks):
        code, said = self.weave(*blocks)
        self.assertEqual(code, 1)
        return said

    def test_functions_have_qualified_names_and_bodies(self):
        names = [one.name for one in cpp_functions.functions(SOURCE)]
        self.assertEqual(names, ["brace", "later", "Inner::Inner", "Inner::operator==", "Inner::size",
                                 "Engine::Core::Core", "Engine::Core::sum", "Engine::Core::sum"])
        one = cpp_functions.named(SOURCE, "Inner::Inner")[0]
        self.assertEqual(SOURCE[one.body : one.end], "{\n    grow();\n  }")
        self.assertTrue(SOURCE[one.start :].startswith("explicit Inner(int size)"))

    def test_a_variant_and_the_pristine_body_stand_in_a_switch(self):
        text = self.woven("fault A01: it subtracts\n" + textwrap.dedent(SUM))
        body = text[text.index("Engine::Core::sum(int") :]
        self.assertIn("switch (::zeroproof::mutation::active_fault()) {\ncase 1:\n", body)
        self.assertLess(body.index("all -= other;"), body.index("default:"))
        self.assertGreater(body.index("all += other;"), body.index("default:"))
        self.assertTrue(text.startswith('#include "props/mutation/active_fault.h"\n#line 1 '))

    def test_blanks_at_the_ends_of_a_line_do_not_count(self):
        self.woven("""
            fault A01: it subtracts
            @ engine/a.cpp: Engine::Core::sum
            -all += other;
            +all -= other;
            """)

    def test_a_line_that_stands_once_fits_among_overloads(self):
        text = self.woven("""
            fault A01: the half is missing
            @ engine/a.cpp: Engine::Core::sum
            -  return one + 0.5;
            +  return one;
            """)
        self.assertIn("case 1:", text[text.index("Engine::Core::sum(double") :])
        self.assertNotIn("case 1:", text[: text.index("Engine::Core::sum(double")])

    def test_lines_that_are_not_there_are_named_with_fault_and_function(self):
        said = self.refused("""
            fault B02: nowhere
            @ engine/a.cpp: Engine::Core::sum
            -  all *= other;
            +  all += other;
            """)
        for part in ("fault B02", "stand not in", "engine/a.cpp", "Engine::Core::sum",
                     "all *= other;", "x.faults:1"):
            self.assertIn(part, said)

    def test_lines_that_stand_twice_are_refused(self):
        self.write("engine/a.cpp", SOURCE.replace("return one + 0.5;", "return all;"))
        said = self.refused("""
            fault B03: in both of them
            @ engine/a.cpp: Engine::Core::sum
            -  return all;
            +  return 0;
            """)
        self.assertIn("stand 2 times", said)

    def test_files_and_functions_that_are_not_there_are_named(self):
        self.assertIn("defines no function none", self.refused(
            "fault B04: x\n@ engine/a.cpp: none\n-  a;\n+  b;"))
        self.assertIn("no file engine/b.cpp", self.refused(
            "fault B05: x\n@ engine/b.cpp: none\n-  a;\n+  b;"))

    def test_a_signature_may_be_matched_and_not_changed(self):
        said = self.refused("""
            fault B06: another signature
            @ engine/a.cpp: Engine::Core::sum
            -double Engine::Core::sum(double one) {
            +double Engine::Core::sum(double two) {
            """)
        self.assertIn("changes the signature", said)
        text = self.woven("""
            fault B07: only its body
            @ engine/a.cpp: Engine::Core::sum
            -double Engine::Core::sum(double one) {
            -  return one + 0.5;
            +double Engine::Core::sum(double one) {
            +  return 2.0 * one;
            """)
        self.assertIn("return 2.0 * one;", text)

    def test_initialisers_may_not_be_changed(self):
        said = self.refused("""
            fault B08: another size
            @ engine/a.cpp: Engine::Core::Core
            -    : size_{size},
            +    : size_{size + 1},
            """)
        self.assertIn("changes the signature or the initialisers", said)

    def test_a_body_on_one_line_is_replaced(self):
        text = self.woven("""
            fault B09: nothing is in it
            @ engine/a.cpp: Inner::size
            -  int size() const override { return size_; }
            +  int size() const override { return 0; }
            """)
        self.assertIn("{ return 0; }", text)
        self.assertIn("{ return size_; }", text)

    def test_several_faults_share_a_function_and_a_fault_may_have_several_hunks(self):
        text = self.woven("fault A02: it subtracts\n" + textwrap.dedent(SUM), """
            fault A01: it counts twice, and nothing is too much
            @ engine/a.cpp: Engine::Core::sum
            -  int all = one;
            +  int all = 2 * one;
            -  if (all > 1'000'000) return 0;
            """)
        body = text[text.index("Engine::Core::sum(int") :]
        first, second = body.index("case 1:"), body.index("case 2:")
        variant = body[first:second]
        self.assertIn("int all = 2 * one;", variant)
        self.assertNotIn("1'000'000", variant)
        self.assertIn("all += other;", variant)

    def test_hunks_that_meet_are_refused(self):
        said = self.refused("fault A01: two of one line\n" + textwrap.dedent(SUM) +
                            textwrap.dedent(SUM))
        self.assertIn("two of its parts replace the same lines", said)

    def test_helpers_stand_before_their_function(self):
        text = self.woven("""
            fault A01: by a helper that keeps state
            @ engine/a.cpp: before Engine::Core::sum
            +#include "engine/helper.h"
            +int& calls(Engine::Core& core) {
            +  return mutation::fault_state<int>(&core, "calls");
            +}
            @ engine/a.cpp: Engine::Core::sum
            -  all += other;
            +  all += calls(*this)++;
            """)
        self.assertLess(text.index("int& calls("), text.index("int Engine::Core::sum(int"))
        self.assertLess(text.index('#include "engine/helper.h"'), text.index("#line"))

    def test_lines_count_as_in_the_source(self):
        """The compiler says of each of these words where it stands in the source."""
        text = self.woven("""
            fault A01: a longer body, and a shorter one
            @ engine/a.cpp: Engine::Core::sum
            -  int all = one;
            +  int all = 1;
            +  all = 2;
            +  all = 3;
            -  if (all > 1'000'000) return 0;
            """)
        where = self.places_of(text)
        source = {line.strip(): number for number, line in enumerate(SOURCE.split("\n"), 1)}
        for line in ("all += other;", "return all;", "return one + 0.5;", "begin();"):
            self.assertEqual(set(where[line]), {source[line]}, line)
        self.assertEqual(where["all = 3;"], [source["int all = one;"]])

    def places_of(self, text):
        places, number = {}, 0
        for line in text.split("\n"):
            if line.startswith("#line"):
                number = int(line.split()[1])
                continue
            places.setdefault(line.strip(), []).append(number)
            number += 1
        return places

    def test_a_woven_source_compiles_and_follows_the_active_fault(self):
        self.write("engine/a.cpp", textwrap.dedent("""\
            int twice(int value) {
              return 2 * value;
            }
            """))
        self.woven("""
            fault A01: it is three times
            @ engine/a.cpp: twice
            -  return 2 * value;
            +  return 3 * value;
            """)
        header = os.path.join(self.folder.name, "props", "mutation", "active_fault.h")
        os.makedirs(os.path.dirname(header))
        with open(header, "w", encoding="utf-8") as file:
            file.write("namespace zeroproof::mutation { inline int fault; "
                       "inline int active_fault() { return fault; } }\n")
        main = self.write("main.cpp", textwrap.dedent("""\
            #include "out/engine/a.cpp"
            int main() {
              if (twice(5) != 10) return 1;
              zeroproof::mutation::fault = 1;
              return twice(5) == 15 ? 0 : 2;
            }
            """))
        program = os.path.join(self.folder.name, "program")
        compiler = os.environ.get("CXX", "c++")
        subprocess.run([compiler, "-std=c++20", "-Wall", "-Werror", "-I", self.folder.name, main,
                        "-o", program], check=True)
        self.assertEqual(subprocess.run([program], check=False).returncode, 0)

    def test_headers_bring_their_includers_along(self):
        self.write("engine/a.h", "#pragma once\nstruct A {\n  int f() const { return 1; }\n};\n")
        self.write("engine/b.h", '#pragma once\n#include "engine/a.h"\n')
        self.write("engine/b.cpp", '#include "engine/b.h"\n')
        self.write("engine/c.cpp", '#include "engine/c.h"\n')
        block = """
            fault A01: none
            @ engine/a.h: A::f
            -  int f() const { return 1; }
            +  int f() const { return 0; }
            """
        code, said = self.weave(block, options=["--list"])
        self.assertEqual((code, said), (0, "engine/a.cpp\nwoven engine/a.h\nengine/b.cpp\n"))
        text = self.woven(block, path="engine/a.h")
        self.assertTrue(text.startswith('#pragma once\n#include "props/mutation/active_fault.h"\n'))

    def test_the_table_has_every_fault_with_its_keys(self):
        text = self.woven("""
            # A comment.
            fault C02: said "at" a seam
            properties: P26 R7
            decorator: share_callbacks
            """, "fault A01: it subtracts\npolicy: deepspeed-0.18.5\n" + textwrap.dedent(SUM),
            path="fault_table.cpp")
        self.assertLess(text.index('"A01"'), text.index('"C02"'))
        for part in ('.number = 1,\n       .id = "A01"', '.sentence = "said \\"at\\" a seam"',
                     ".is_woven = false", '.decorator = "share_callbacks"',
                     '.policy = "deepspeed-0.18.5"'):
            self.assertIn(part, text)

    def test_what_is_no_fault_is_refused_with_its_line(self):
        for block, words in (("fault 62: x", "x.faults:1: 'fault 62: x' is not 'fault ID: sentence'"),
                             ("policy: exact", "belongs to no fault"),
                             ("fault A01: x\ncolour: red", "x.faults:2: 'colour: red' is no key"),
                             ("fault A01: x\n@ engine/a.cpp", "is not '@ FILE: FUNCTION'"),
                             ("fault A01: x\n@ engine/a.cpp: f\n+  a;", "'+' without '-'"),
                             ("fault A01: x\n@ engine/a.cpp: before f\n-  a;", "lines of '+' alone"),
                             ("fault A01: x\n\nfault A01: y", "it stands twice")):
            self.assertIn(words, self.refused(block))

    def test_what_is_woven_no_more_goes(self):
        self.woven("fault A01: it subtracts\n" + textwrap.dedent(SUM))
        self.assertEqual(self.weave("fault A02: said at a seam\ndecorator: share_callbacks")[0], 0)
        self.assertFalse(os.path.exists(os.path.join(self.out, "engine/a.cpp")))

    def test_equal_output_is_not_written_again(self):
        self.woven("fault A01: it subtracts\n" + textwrap.dedent(SUM))
        path = os.path.join(self.out, "engine/a.cpp")
        os.utime(path, (1, 1))
        self.woven("fault A01: it subtracts\n" + textwrap.dedent(SUM))
        self.assertEqual(os.stat(path).st_mtime, 1)


STATEMENTS = """\
int f(int size) {
  const int kMost = 3;
  static int calls = 7;
  int all = 0;
  if (size > kMost) return 1;
  all += size;  // it grows; slowly
  note(all,
       "x;y");
  ZP_CHECK(all != 4, "never");
  if constexpr (sizeof(int) == 4) all = 2;
  for (int i = 0; i < size; ++i) {
    if (const int one = at(i); one != 0) continue;
    values[i] = true;
  }
  const auto later = [&](int one) { all -= one; };
  if (all < 0)
    later(1.5);
  else
    throw std::runtime_error("no");
  std::vector<std::array<int, 5>> many;
  std::vector<double> list = std::get<std::vector<double>>(many);
  if (Tensor* const sum = begin(all)) use(sum * 0x1p-24);
  return all;
}

constexpr int g() { return 5; }
"""


class Mutating(unittest.TestCase):
    def sites(self):
        found = []
        for function in cpp_functions.functions(STATEMENTS):
            for site in statements.sites(STATEMENTS, function):
                found.append((site.rule, STATEMENTS[site.begin : site.end]))
        return found

    def of_rule(self, rule):
        return [text for name, text in self.sites() if name == rule]

    def test_expressions_and_jumps_are_left_out_and_declarations_are_not(self):
        self.assertEqual(self.of_rule("delete"), [
            "all += size;", 'note(all,\n       "x;y");', "all = 2;", "continue;", "values[i] = true;",
            "all -= one;", "later(1.5);", 'throw std::runtime_error("no");',
            "use(sum * 0x1p-24);"])

    def test_conditions_are_negated_where_they_declare_nothing(self):
        self.assertEqual(self.of_rule("negate"), ["size > kMost", "all < 0"])

    def test_neighbours_change_places(self):
        self.assertEqual(self.of_rule("swap"), ["all += size;"])

    def test_constants_are_those_of_the_run(self):
        self.assertEqual(self.of_rule("constant"), ["3", "0", "1", "2", "0", "true", "0", "1.5"])

    def test_another_constant_is_of_the_same_type(self):
        for text, other in (("0", "1"), ("7u", "8u"), ("1'000", "1001"), ("true", "false"),
                            ("0.5", "2.0"), ("1e-8", "1.00000002"), ("2.0F", "5.0F"),
                            ("1e308", "5e+307")):
            self.assertEqual(statements.other_constant(text), other)

    def test_each_mutant_does_what_its_rule_says(self):
        source = """\
            #include <string>
            std::string text;
            void add(const char* more) { text += more; }
            std::string f(bool is_short) {
              text = "";
              add("a");
              add("b");  // and; then
              if (is_short) return text;
              add("c");
              return text + std::to_string(1);
            }
            """
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "engine", "a.cpp")
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(textwrap.dedent(source))
            out = os.path.join(folder, "out")
            self.assertEqual(mutate.main([out, folder, "engine/a.cpp"]), 0)
            header = os.path.join(folder, "props", "mutation", "score", "active_mutant.h")
            os.makedirs(os.path.dirname(header))
            with open(header, "w", encoding="utf-8") as file:
                file.write("#pragma once\nnamespace zeroproof::mutation { inline int active; "
                           "inline bool is_mutant(int n) { return n == active; } }\n")
            main = os.path.join(folder, "main.cpp")
            with open(main, "w", encoding="utf-8") as file:
                file.write('#include "out/engine/a.cpp"\n#include <cstdio>\nint main() {\n'
                           "  for (zeroproof::mutation::active = 0; zeroproof::mutation::active <= 9;"
                           " ++zeroproof::mutation::active)\n"
                           '    std::printf("%s %s\\n", f(false).c_str(), f(true).c_str());\n}\n')
            program = os.path.join(folder, "program")
            subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-I", folder, main, "-o",
                            program], check=True)
            lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split("\n")
            with open(os.path.join(out, "mutant_table.cpp"), encoding="utf-8") as file:
                self.assertEqual(file.read().count('"engine/a.cpp"'), 9)
        self.assertEqual(lines[0], "abc1 ab")
        self.assertIn("ac1 a", lines[1:])  # without the second
        self.assertIn("bac1 ba", lines[1:])  # in the other order
        self.assertIn("ab abc1", lines[1:])  # where the condition is negated
        self.assertIn("ab1 ab", lines[1:])  # without the third
        self.assertIn("abc2 ab", lines[1:])  # with another constant


if __name__ == "__main__":
    unittest.main()
