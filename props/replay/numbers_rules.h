#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/outermost_backward.h"
#include "props/replay/rule_findings.h"
#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// What the numbers of one rank say: parameters that do not move, values that are not finite and
// where they began. Feed the events and number records of one rank in order.
class NumbersRules {
 public:
  // Both must outlive it; `backward` has seen the event that the rules see.
  NumbersRules(const NameTable& names, const OutermostBackward& backward)
      : names_(names), backward_(backward), findings_(names, 8) {}

  void on_event(const HookEvent& event);
  void on_numbers(const NumbersRecord& record);
  void finish(std::vector<Diagnosis>& out);

 private:
  struct Motion {  // of one parameter
    std::optional<std::string> before;
    std::uint64_t steps = 0;  // with a gradient that is not zero
    bool has_moved = false;
  };

  void before_step(const NumbersRecord& record);
  void after_step(const NumbersRecord& record);
  void find_bad_gradient(const NumbersRecord& record);
  void find_bad_parameter(const NumbersRecord& record);
  void find_still();
  std::string first_formed(const std::vector<std::string>& params) const;

  const NameTable& names_;
  const OutermostBackward& backward_;
  RuleFindings findings_;
  std::map<std::string, Motion, std::less<>> motions_;
  std::vector<NameId> formed_;   // gradients of the last backward, in order
  HookEvent last_;               // for the place of a record, which has none
  std::uint64_t overflows_ = 0;  // steps with a gradient that is not finite
  std::string overflow_text_;
  HookEvent overflow_at_;
};

}  // namespace zeroproof
