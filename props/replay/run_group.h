#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "props/replay/properties_level.h"
#include "props/replay/run_comparison.h"

namespace zeroproof {

// Files with the same word are of one run: TraceStory::run.
std::string run_word(const RunFacts& facts);

// Compares the files of one or more runs: all ranks of a run with each other (P45, P57, P67, and
// what RunComparison finds), and the gradients of stage 1-3 with those of stage 0 of the same
// program, dtype and world. Needs only digests, so levels may go away after `add`.
class RunGroup {
 public:
  // Gradients of all files together; those of later files are not compared (P26 to P30).
  static constexpr std::size_t kValuesMax = std::size_t{1} << 23;

  RunGroup() : tables_(make_member_table()) {}

  // `file` names the trace in findings.
  void add(const PropertiesLevel& level, std::string_view file);
  void add(RunFacts facts, RankDigest digest, std::string_view file);

  struct FileReport {
    std::string file;
    PropertiesReport report;  // of P26-P30, P45, P57 and P67 only; findings sit at the odd ranks
  };

  // One per added file, in the order of adding.
  std::vector<FileReport> compare() const;

  // One for each run of several ranks, in the order of their words. Reads files that differ again.
  std::vector<RunComparison> compare_runs(const std::function<bool()>& should_stop) const;

  // Of the digests.
  std::size_t memory_bytes() const;

 private:
  struct Member {
    RunFacts facts;
    std::string file;
    std::string run;  // run_word
    RankDigest digest;
  };
  using Members = std::vector<const Member*>;  // ascending by rank

  std::vector<Members> runs() const;
  static bool has_twins(const Members& run);
  static std::vector<RunMember> run_members(const Members& run);
  static std::vector<PropertiesReport> compare_ranks(const Members& run);
  void compare_gradients(const Member& member, PropertiesReport& report) const;
  const Member* baseline(const Member& of) const;

  std::vector<Member> members_;
  MemberTable tables_;
  std::size_t values_kept_ = 0;
};

}  // namespace zeroproof
