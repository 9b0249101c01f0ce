#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/scheduler.h"

namespace zeroproof {

// What a number of runs proves: a bug that needs `depth` ordering constraints was missed with at
// most this probability (Burckhardt and others, ASPLOS 2010).
struct PctCertificate {
  std::uint64_t tasks = 0;                    // n: most that one execution had
  std::uint64_t steps = 0;                    // k: most choices of one execution
  int depth = 1;                              // d
  std::uint64_t runs = 0;                     // with this n and k
  double hit_chance() const;                  // of one run, at least: 1 / (n k^(d-1))
  double miss_chance() const;                 // of all runs, at most
  std::uint64_t runs_for(double miss) const;  // so many miss it with at most this chance
};

// Probabilistic concurrency testing: every task (an option's text, "r0" or "r1.reduction") has a
// random priority, the highest goes on, and at depth - 1 random steps the task to go on next falls
// below all others. Execution i draws from its own stream of the seed. n and k are learnt from
// the executions before; runs under smaller ones do not count.
class PctScheduler final : public Scheduler {
 public:
  PctScheduler(int depth, std::uint64_t seed);  // depth >= 1
  ~PctScheduler() override;

  bool new_execution() override;
  std::size_t choose(const ChoicePoint& at) override;
  void end_execution(const ExecutionEnd& end) override;

  PctCertificate certificate() const { return certificate_; }

 private:
  struct Generator;
  std::uint64_t priority_of(std::string_view task);

  std::uint64_t seed_;
  std::uint64_t next_execution_ = 0;
  std::unique_ptr<Generator> generator_;
  PctCertificate certificate_;
  std::uint64_t step_ = 0;  // of this execution
  std::map<std::string, std::uint64_t, std::less<>> priorities_;
  std::vector<std::uint64_t> changes_;  // steps, sorted; the i-th gives priority i
};

}  // namespace zeroproof
