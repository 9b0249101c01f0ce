#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/cli/verb.h"

namespace zeroproof {

// What `explore` was asked for in words that other levels have too.
struct ZeroEpilogueWords {
  std::vector<std::string> settings;  // of --set
  std::string scheduler;
  std::string budget;
  std::string workers = "1";
  bool minimizes = true;
  bool skips_reduction = false;
};

// `zeroproof explore zero_epilogue` and the replay of its schedules
// (docs/explanation/how_orders_are_explored.md).
class ZeroEpilogueExplore {
 public:
  void declare(Flags& flags);
  Result<VerbResult> run(const ZeroEpilogueWords& words, Session& session);

  // One token or *.zpe file.
  static Result<VerbResult> replay(const std::string& word, Session& session);

 private:
  bool counts_schedules_ = false;
  bool minimizes_settings_ = false;
  bool measures_coverage_ = false;
};

}  // namespace zeroproof
