#pragma once

#include <string>
#include <vector>

#include "tests/tidy/source_file.h"

namespace zeroproof::tidy {

using Findings = std::vector<Finding>;
using Tree = std::vector<SourceFile>;

// Rule ids: `layer` (a file includes its own layer and those below), `third_party` (a library
// stays where the table puts it), `include_cycle`.
Findings check_includes(const Tree& tree);

// The Debian packages that the tree's includes come from, sorted.
std::vector<std::string> packages_used(const Tree& tree);

// Rule ids: `ban` (clocks, threads, hash order, output and environment below props), `memory`.
Findings check_bans(const Tree& tree);

// Rule ids: `file_size`, `line_length`, `function_size`, `parameters`.
Findings check_sizes(const Tree& tree);

// Rule ids: `pragma_once`, `blanks`, `unfinished`, `using_namespace`.
Findings check_text(const Tree& tree);

// Rule id: `two_types` (two headers define a type of one name in one namespace).
Findings check_names(const Tree& tree);

// The five together, sorted by place.
Findings check_all(const Tree& tree);

// A finding that the tree may keep, and why: a line of allowances.txt.
struct Allowance {
  std::string rule;
  std::string path;
  std::string reason;
};

std::vector<Allowance> load_allowances(const std::filesystem::path& file);

// Findings that no allowance covers, and one `allowance` finding for each that covers no finding or
// gives no reason.
Findings without_allowed(const Findings& findings, const std::vector<Allowance>& allowances);

// `file:line: rule: detail`, one a line.
std::string to_text(const Findings& findings);

}  // namespace zeroproof::tidy
