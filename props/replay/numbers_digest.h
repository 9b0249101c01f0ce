#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "props/replay/job_facts.h"
#include "sim/trace/record.h"

namespace zeroproof {

// The numbers of one step in a few words, for the comparison with other ranks.
struct NumbersStep {
  std::int64_t optimizer = -1;
  std::int64_t step = 0;
  bool is_after_step = false;
  std::uint64_t params = 0;     // hash over the parameters that all ranks hold; 0: none
  std::uint64_t grads = 0;      // over their gradients
  std::uint64_t all_grads = 0;  // over those of sharded parameters too
  double grad_norm = 0;         // of everything that this rank holds

  friend bool operator==(const NumbersStep&, const NumbersStep&) = default;
};

// What RunNumbers compares between ranks. Bounded: the first kStepsMax records.
struct NumbersDigest {
  static constexpr std::size_t kStepsMax = 8192;

  std::vector<NumbersStep> steps;  // in the order of the file
  std::uint64_t records = 0;       // all of them

  void add(const NumbersRecord& record, const JobFacts& facts, std::int64_t stage);
};

// Whether all ranks of the parameter's data-parallel group hold the same values: DDP, ZeRO stages 0
// to 2, and what a job without a wrapper reduces by hand. `of_gradient`: of its gradient before the
// step.
bool is_replicated(std::string_view param, const JobFacts& facts, std::int64_t stage,
                   bool of_gradient);

}  // namespace zeroproof
