#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

// Names what went wrong in a DeepSpeed engine where the properties only see its traces: by the
// shape of the events, never by the name of the program. Feed the events of one rank in order.
class DeepSpeedSigns {
 public:
  // `names` and `backward` must outlive it; `backward` has seen the event that the signs see.
  DeepSpeedSigns(const NameTable& names, const HeaderRecord& header,
                 const OutermostBackward& backward);

  // `line` is the event's line.
  void on_event(const HookEvent& event, std::string_view line);
  void finish(std::vector<Diagnosis>& out) { findings_.take(out); }

 private:
  void on_call(const HookEvent& event);
  void on_return(const HookEvent& event);
  void on_gradient(const HookEvent& event);
  void on_task_end(const HookEvent& event);
  void on_exception(const HookEvent& event);
  void find_undefined(NameId hook, std::string_view type, const HookEvent& event);
  void on_optimizer_state(const HookEvent& event, std::string_view line);
  void on_forward(const HookEvent& event);
  void find_shared_loss(const HookEvent& event);
  void end_step(const HookEvent& event);

  const NameTable& names_;
  const OutermostBackward& backward_;
  RuleFindings findings_;
  std::int64_t stage_;
  std::vector<std::string> partitioned_;  // since the last forward, inside a backward
  std::optional<std::uint64_t> partition_lc_;
  std::int32_t backwards_ = 0;   // outermost ones since the last forward
  NameId undefined_param_;       // whose hook got no gradient, while it runs
  NameId open_hook_;             // parameter whose gradient hook has not returned
  bool is_refused_ = false;      // the prologue raised: refused by design
  bool scales_outputs_ = false;  // this release divides by the accumulation steps per output
  double accumulation_ = 1;      // steps
  struct Window {                // of one engine, since its last step
    std::int32_t forwards = 0;
    std::int32_t backwards = 0;
    bool has_updated = false;
  };
  std::map<EngineId, Window> windows_;
  std::int32_t open_forwards_ = 0;  // of the engine
  bool has_forward_ = false;        // since the last backward
  std::string module_past_engine_;  // called between an engine's forward and its backward
};

}  // namespace zeroproof
