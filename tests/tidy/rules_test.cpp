#include "tests/tidy/rules.h"

#include <gtest/gtest.h>

namespace zeroproof::tidy {
namespace {

std::string repeated(const std::string& line, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += line;
  return text;
}

// A snippet that breaks exactly one rule, once, at a stated line.
struct Bad {
  std::string path;
  std::string text;
  std::string rule;
  std::size_t line;
};

const std::string kWord = std::string("TO") + "DO";

const std::vector<Bad>& bad_snippets() {
  static const std::vector<Bad> kBad = {
      {"model/a.cpp", "\n#include \"engine/b.h\"\n", "layer", 2},
      {"engine/a.cpp", "#include \"sim/b.h\"\n", "layer", 1},
      {"sim/a.cpp", "#include \"props/b.h\"\n", "layer", 1},
      {"props/a.cpp", "#include \"tests/b.h\"\n", "layer", 1},
      {"bench/a.cpp", "#include \"tests/b.h\"\n", "layer", 1},
      {"props/a.cpp", "#include \"props/mutation/b.h\"\n", "layer", 1},
      {"engine/runtime/cuda/a.cpp", "#include \"engine/b.h\"\n", "layer", 1},
      {"model/a.cpp", "#include \"nowhere.h\"\n", "layer", 1},
      {"model/a.h", "#pragma once\n#include <fmt/format.h>\n", "third_party", 2},
      {"model/a.cpp", "#include <nlohmann/json.hpp>\n", "third_party", 1},
      {"props/a.cpp", "#include <CLI/CLI.hpp>\n", "third_party", 1},
      {"props/a.cpp", "#include <rapidcheck.h>\n", "third_party", 1},
      {"engine/a.cpp", "#include <unistd.h>\n", "third_party", 1},
      {"tests/a.cpp", "#include <boost/any.hpp>\n", "third_party", 1},
      {"model/c.h", "#pragma once\n#include \"model/c.h\"\n", "include_cycle", 2},
      {"model/a.cpp", "#include <thread>\n", "ban", 1},
      {"engine/a.cpp", "#include <chrono>\n", "ban", 1},
      {"sim/a.cpp", "std::random_device seed;\n", "ban", 1},
      {"sim/a.cpp", "std::unordered_map<int, int> m;\n", "ban", 1},
      {"sim/a.cpp", "#include <iostream>\n", "ban", 1},
      {"props/a.cpp", "int n = printf(\"\");\n", "ban", 1},
      {"engine/a.cpp", "auto v = std::getenv(\"A\");\n", "ban", 1},
      {"tests/a.cpp", "#include <format>\n", "ban", 1},
      {"model/a.cpp", "auto* p = new int;\n", "memory", 1},
      {"model/a.h", "#pragma once\n" + repeated("\n", 200), "file_size", 201},
      {"sim/a.cpp", repeated("\n", 401), "file_size", 401},
      {"tests/a.cpp", repeated("\n", 601), "file_size", 601},
      {"model/a.cpp", repeated("/", 101) + "\n", "line_length", 1},
      {"model/a.cpp", "\nint f(int a) {\n" + repeated("  ++a;\n", 69) + "}\n", "function_size", 2},
      {"model/a.cpp", "A::A() : b_{1}\n{\n" + repeated("  f();\n", 69) + "}\n", "function_size", 2},
      {"model/a.h",
       "#pragma once\nstruct A {\n  int f(int a, int b, int c, int d, int e, int f, int g);\n};\n",
       "parameters", 3},
      {"model/a.cpp", "int f(int a, int b, int c, int d,\n  int e, int f, int g) {\n}\n",
       "parameters", 1},
      {"model/a.h", "// a\nint f();\n", "pragma_once", 1},
      {"model/a.cpp", "int a;\n\tint b;\n", "blanks", 2},
      {"model/a.cpp", "int a; \n", "blanks", 1},
      {"model/a.cpp", "int a;", "blanks", 1},
      {"model/a.cpp", "int a;  // " + kWord + ": more\n", "unfinished", 1},
      {"model/a.cpp", "using namespace std;\n", "using_namespace", 1},
  };
  return kBad;
}

Tree with_targets(const SourceFile& file) {
  Tree tree = {file};
  for (const char* path :
       {"engine/b.h", "sim/b.h", "props/b.h", "props/mutation/b.h", "tests/b.h"}) {
    tree.push_back(parse_source(path, "#pragma once\n"));
  }
  return tree;
}

TEST(TidyRules, Each_bad_snippet_breaks_its_rule_and_no_other) {
  for (const Bad& bad : bad_snippets()) {
    const Findings findings = check_all(with_targets(parse_source(bad.path, bad.text)));
    ASSERT_EQ(findings.size(), 1U) << bad.path << "\n" << bad.text << to_text(findings);
    EXPECT_EQ(findings[0].rule, bad.rule) << to_text(findings);
    EXPECT_EQ(findings[0].line, bad.line) << to_text(findings);
  }
}

TEST(TidyRules, Comments_literals_and_names_that_only_contain_a_word_break_nothing) {
  const char* text = R"text(#include <new>
// std::thread, unordered_map, new int
/* #include <chrono>
   getenv */
const char* kText = "printf(new rand())";
const char* kRaw = R"(unordered_map)";
constexpr int kMany = 1'000'000; constexpr char kQuote = '"'; int renewed(int random);
A(const A&) = delete;
int f(std::map<int, std::pair<int, int>> a, int b, int c, int d, int e) { return a.size(); }
)text";
  EXPECT_EQ(to_text(check_all({parse_source("model/a.cpp", text)})), "");
}

TEST(TidyRules, Tables_and_classes_are_not_functions) {
  const std::string table = "const Row kRows[] = {\n" + repeated("  {1, 2},\n", 80) + "};\n";
  const std::string type = "class A {\n" + repeated("  int f(int a);\n", 80) + "};\n";
  const std::string space = "namespace {\n" + repeated("int f() { return 1; }\n", 80) + "}\n";
  EXPECT_EQ(to_text(check_all({parse_source("model/a.cpp", table + type + space)})), "");
}

TEST(TidyRules, Two_headers_define_no_type_of_one_name_in_one_namespace) {
  const auto header = [](const std::string& path, const std::string& space) {
    return parse_source(path, "#pragma once\nnamespace " + space + " {\n\nclass Declared;\n" +
                                  "struct Record {\n  int size = 0;\n};\n\n}  // namespace\n");
  };
  const Findings findings =
      check_all({header("engine/a.h", "zeroproof"), header("sim/b.h", "zeroproof"),
                 header("sim/c.h", "zeroproof::sim")});
  EXPECT_EQ(to_text(findings), "sim/b.h:5: two_types: Record is in engine/a.h, too\n");
}

TEST(TidyRules, Allowances_need_a_reason_and_a_use) {
  const Findings one = {{"sim/a.cpp", 3, "ban", "<thread>"}};
  EXPECT_TRUE(without_allowed(one, {{"ban", "sim/a.cpp", "workers share nothing"}}).empty());
  EXPECT_EQ(without_allowed(one, {{"ban", "sim/a.cpp", ""}}).size(), 2U);
  EXPECT_EQ(without_allowed({}, {{"ban", "sim/a.cpp", "workers share nothing"}}).size(), 1U);
  EXPECT_EQ(without_allowed(one, {{"ban", "sim/b.cpp", "another file"}}).size(), 2U);
}

}  // namespace
}  // namespace zeroproof::tidy
