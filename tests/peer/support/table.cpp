#include "tests/peer/support/table.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace zeroproof::peer {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Count {
  int rows = 0;
  int passed = 0;
  int not_applicable = 0;
};

Count count(const std::vector<TableRow>& table, const std::map<std::string, std::string>& verdicts,
            int tier) {
  Count result;
  for (const TableRow& row : table) {
    if (row.tier != tier) continue;
    ++result.rows;
    if (row.ours.empty()) ++result.not_applicable;
    if (!row.ours.empty() && verdicts.at(row.ours).empty()) ++result.passed;
  }
  return result;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string line_of(const TableRow& row, const std::map<std::string, std::string>& verdicts) {
  const std::string tier = row.tier == 0 ? "branch" : std::to_string(row.tier);
  if (row.ours.empty())
    return fmt::format("| {} | {} | - | does not apply | {} |\n", row.test, tier,
                       escaped(row.note));
  const std::string& verdict = verdicts.at(row.ours);
  return fmt::format("| {} | {} | {} | {} | {} |\n", row.test, tier, row.ours,
                     verdict.empty() ? "passes" : "fails: " + escaped(verdict),
                     escaped(row.breaks_with + (row.note.empty() ? "" : ". " + row.note)));
}

constexpr const char* kHead =
    "# The peer's tests\n\n"
    "Generated from `tests/peer/peer_rows.json` and a run of `zeroproof_peer_tests`; do not edit.\n"
    "After a change of the table or the tests:\n\n"
    "    build/dev/bin/zeroproof_peer_tests --gtest_also_run_disabled_tests \\\n"
    "      --gtest_filter=PeerTestsDocument.DISABLED_Is_written\n\n"
    "Each row is one test of DeepSpeed's that is about what the engine does (tier 1: hook order,\n"
    "epilogues, gradients, lives of parameters; tier 2: what is around it), and ours of the same\n"
    "name. Ours run on host ranks and compare with a plain data-parallel trainer\n"
    "(`tests/peer/support/ddp.h`). Every row also fails with what the last column names: a quirk\n"
    "(`h4`: include/zeroproof/engine/quirks.h), a policy (`deepspeed-0.18.3`), a rule of the eager "
    "fallback, or a "
    "fault: "
    "below\n"
    "the engine (`lost_...`: tests/peer/support/faulty_runtime.h) or in the row's own condition.\n"
    "`PeerRows.Each_row_fails_with_what_breaks_it` runs them all.\n\n";

}  // namespace

std::vector<TableRow> read_table() {
  const std::string path = std::string(ZP_SOURCE_DIR) + "/tests/peer/peer_rows.json";
  std::vector<TableRow> table;
  for (const nlohmann::json& row : nlohmann::json::parse(read_file(path)))
    table.push_back({row.at("file"), row.at("test"), row.at("tier"), row.value("ours", ""),
                     row.value("breaks_with", ""), row.value("note", "")});
  return table;
}

std::string render(const std::vector<TableRow>& table,
                   const std::map<std::string, std::string>& verdicts) {
  std::string text = kHead;
  text += "| tier | rows | pass | do not apply |\n|---|---|---|---|\n";
  for (const int tier : {1, 2, 0}) {
    const Count result = count(table, verdicts, tier);
    text += fmt::format("| {} | {} | {} | {} |\n", tier == 0 ? "branches" : std::to_string(tier),
                        result.rows, result.passed, result.not_applicable);
  }
  std::string file;
  for (const TableRow& row : table) {
    if (row.file != file) {
      file = row.file;
      text += fmt::format(
          "\n## {}\n\n| row | tier | ours | result | breaks with, or why not |\n"
          "|---|---|---|---|---|\n",
          file);
    }
    text += line_of(row, verdicts);
  }
  return text;
}

std::string document_path() {
  return std::string(ZP_SOURCE_DIR) + "/tests/peer/upstream_tests.md";
}

std::string read_document() {
  return read_file(document_path());
}

}  // namespace zeroproof::peer
