#pragma once

#include <string_view>

#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Whose design a recorded job promises.
enum class Framework { plain, ddp, fsdp2, deepspeed, fsdp1, dtensor, unknown };

// "plain", "ddp", "fsdp2", "deepspeed", "fsdp1", "dtensor", "unknown".
std::string_view framework_name(Framework framework);

// Finds the framework by what wraps the first model, by the header (producer.framework, stage, else
// producer.deepspeed), and where both are silent, by the first event that only one of them
// writes.
class FrameworkFinder {
 public:
  explicit FrameworkFinder(const HeaderRecord& header);

  // A job that wraps a model after others is of the wrapper's framework.
  void on_wrapper(const WrapperRecord& wrapper);
  void on_event(const HookEvent& event, const NameTable& names) {
    if (!is_certain_) look_at(event, names);
  }
  Framework framework() const { return framework_; }

 private:
  void look_at(const HookEvent& event, const NameTable& names);
  void settle(Framework framework);

  Framework framework_ = Framework::plain;
  bool is_certain_ = false;
  bool is_wrapped_ = false;  // a wrapper record said it
};

}  // namespace zeroproof
