#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/result.h"
#include "sim/zero_epilogue/walker.h"

namespace zeroproof {

// `explore zero_epilogue`: the common model of the anchors, on which searches are compared.
struct ZeroEpilogueOptions {
  std::vector<std::string> words;  // "P=2", "defect=M9", ...
  std::string scheduler = "exhaustive";
  bool is_reduced = true;
  bool counts_schedules = false;
  std::size_t workers = 1;
  std::uint64_t seed = 0;
  std::uint64_t schedules = 100'000;  // of the sampling schedulers
};

struct ZeroEpilogueReport {
  std::string settings;
  std::string defect;  // one sentence; empty when none was planted
  std::string scheduler;
  bool is_reduced = false;
  std::optional<std::uint64_t> states;
  std::optional<std::uint64_t> transitions;
  std::optional<std::string> schedules;  // run, or how many there are; decimal
  std::optional<double> bytes_per_state;
  std::optional<PctCertificate> pct;
  // By property A1 to A5, of the uniform random walk; empty unless schedules were counted.
  std::vector<double> probabilities;
  std::optional<zero_epilogue::Property> property;
  std::uint64_t events = 0;        // of its shortest counterexample
  bool is_shortest = false;        // certified; else as a sampling scheduler met it
  std::vector<std::string> steps;  // the counterexample in words; empty in the full search
};

// Code usage for wrong words and for instances that do not fit.
Result<ZeroEpilogueReport> explore_zero_epilogue(const ZeroEpilogueOptions& options);

// `seconds` comes from the caller: nothing below the command reads a clock.
std::string zero_epilogue_json(const ZeroEpilogueReport& report, std::uint64_t seed,
                               double seconds);
std::string zero_epilogue_text(const ZeroEpilogueReport& report, double seconds);

}  // namespace zeroproof
