#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "props/program/program.h"
#include "props/subject/case_id.h"
#include "props/subject/verdict.h"
#include "zeroproof/model/result.h"

namespace zeroproof::subject {

inline constexpr std::string_view kFindingSchema = "zeroproof.subject_finding/1";

// A program that an engine trains wrongly: the smallest known of its signature.
struct SubjectFinding {
  std::string engine;
  std::vector<std::string> settings;  // NAME=VALUE
  Versions versions;                  // what the program ran on
  Verdict verdict;                    // of the program
  CaseId id;                          // of the case that it was first seen in
  program::Program program;
  std::size_t statements_before = 0;  // of the case; 0: not minimised
  std::size_t shrink_runs = 0;
  int runs = 0;       // of the program, with one verdict wanted
  int same_runs = 0;  // of them, how many had the signature
  // How many cases had the signature, by search: "seed 7 shard 0 of 4 cap 0123456789abcdef".
  std::map<std::string, std::uint64_t> seen;

  bool is_flaky() const { return same_runs < runs; }
  bool is_minimized() const { return statements_before != 0; }
  std::uint64_t cases() const;  // all that were seen
  // "gradients-at-step-1a2b3c4d": the same for one engine, its settings and Verdict::group.
  std::string file_stem() const;
};

// A document of kFindingSchema, for a file.
std::string finding_json(const SubjectFinding& finding);
Result<SubjectFinding> parse_finding(std::string_view json, std::string_view where);

// What two searches know of one signature: the smaller program, and all that was seen. Commutative,
// associative, and idempotent.
SubjectFinding merged(const SubjectFinding& a, const SubjectFinding& b);

}  // namespace zeroproof::subject
