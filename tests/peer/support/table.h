#pragma once

#include <map>
#include <string>
#include <vector>

namespace zeroproof::peer {

// One row of tests/peer/peer_rows.json: a test of the peer's and what became of it here.
struct TableRow {
  std::string file;         // upstream's, below tests/unit
  std::string test;         // upstream's class and function
  int tier = 1;             // as tests/peer/upstream_tests.md has it; 0: on a branch alone
  std::string ours;         // the gtest name; empty: it does not apply
  std::string breaks_with;  // a quirk, a policy, a rule or "fault: ..."; empty where ours is
  std::string note;         // why it does not apply, or how ours differs
};

// The committed table, in the peer's order. Throws std::runtime_error when it cannot be read.
std::vector<TableRow> read_table();

// tests/peer/upstream_tests.md; `verdicts` by the gtest name, empty for passed.
std::string render(const std::vector<TableRow>& table,
                   const std::map<std::string, std::string>& verdicts);

// Of the committed document, and where it is.
std::string document_path();
std::string read_document();

}  // namespace zeroproof::peer
