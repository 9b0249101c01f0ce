#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scheduler.h"

namespace zeroproof {

// Runs each execution of another scheduler a second time with the same choices and compares
// sites, options, fingerprints and the end. A difference is nondeterminism of the world.
class TwiceScheduler final : public Scheduler {
 public:
  explicit TwiceScheduler(Scheduler& inner) : inner_(inner) {}

  bool new_execution() override;
  std::size_t choose(const ChoicePoint& at) override;
  void end_execution(const ExecutionEnd& end) override;
  SchedulerStats stats() const override { return inner_.stats(); }
  std::optional<std::string> divergence() const override;

 private:
  struct Point {
    Fingerprint state;
    Fingerprint question;  // site and option names
    std::size_t options = 0;
    std::size_t taken = 0;  // == options: the scheduler cut the execution here
  };

  std::size_t record(const ChoicePoint& at);
  std::size_t compare(const ChoicePoint& at);
  [[noreturn]] void diverge(std::string_view text);

  Scheduler& inner_;
  std::vector<Point> points_;
  ExecutionEnd first_end_;
  std::size_t next_ = 0;
  bool must_repeat_ = false;
  bool is_second_ = false;
  bool has_cut_ = false;  // this scheduler or the inner one ended the execution
  std::optional<std::string> divergence_;
};

}  // namespace zeroproof
