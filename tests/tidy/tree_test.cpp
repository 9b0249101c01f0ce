#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/tidy/rules.h"

namespace zeroproof::tidy {
namespace {

const std::filesystem::path kRoot = ZP_SOURCE_DIR;

struct ToolRun {
  int exit_code = 0;
  std::string output;
};

ToolRun run_tool(const std::string& command) {
  ToolRun run;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {.exit_code = 127, .output = "popen failed"};
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    run.output.append(buffer.data(), got);
  }
  run.exit_code = WEXITSTATUS(pclose(pipe));
  return run;
}

std::string in_root(const std::string& command) {
  return "cd '" + kRoot.string() + "' && " + command;
}

TEST(Tree, Keeps_every_rule) {
  const Tree tree = load_tree(kRoot);
  ASSERT_GT(tree.size(), 20U) << "the tree was not found under " << kRoot;
  const auto allowances = load_allowances(kRoot / "tests/tidy/allowances.txt");
  const Findings findings = without_allowed(check_all(tree), allowances);
  EXPECT_TRUE(findings.empty()) << to_text(findings);
}

TEST(Tree, Installs_the_package_of_every_library_it_includes) {
  std::ifstream list(kRoot / "cmake/packages.txt");
  const std::string text{std::istreambuf_iterator<char>(list), {}};
  for (const std::string& package : packages_used(load_tree(kRoot))) {
    EXPECT_NE(text.find("\n" + package + " "), std::string::npos)
        << package << " is missing in cmake/packages.txt";
  }
}

TEST(Tree, Has_every_public_header_in_the_page_of_the_API) {
  constexpr std::string_view kPublic = "include/zeroproof/";
  std::ifstream page(kRoot / "docs/how-to/use_the_library.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  for (const SourceFile& file : load_tree(kRoot)) {
    if (!file.path.starts_with(kPublic) || file.path.starts_with("include/zeroproof/internal/"))
      continue;
    EXPECT_NE(text.find("`" + file.path.substr(kPublic.size()) + "`"), std::string::npos)
        << file.path << " is missing in docs/how-to/use_the_library.md";
  }
}

TEST(Tree, Is_formatted) {
  std::string tool = "clang-format-14";
  if (run_tool(tool + " --version").exit_code != 0) tool = "clang-format";
  if (run_tool(tool + " --version").output.find("version 14.") == std::string::npos) {
    GTEST_SKIP() << "clang-format 14 is not installed (package clang-format-14)";
  }
  std::string command = tool + " --style=file --dry-run --Werror";
  for (const SourceFile& file : load_tree(kRoot)) command += " " + file.path;
  const ToolRun run = run_tool(in_root(command));
  EXPECT_EQ(run.exit_code, 0) << run.output << "./zp format puts it right";
}

TEST(Tree, Is_spelled_right) {
  if (run_tool("codespell --version").exit_code != 0) {
    GTEST_SKIP() << "codespell is not installed (package codespell)";
  }
  const ToolRun run = run_tool(in_root(
      "codespell --quiet-level=3 --skip='*.gz,*.jsonl,./build,./out,./.git,*/traces/*,*/fuzz/*' "
      "--ignore-words=tests/tidy/codespell_words.txt ."));
  EXPECT_EQ(run.exit_code, 0) << run.output;
}

}  // namespace
}  // namespace zeroproof::tidy
