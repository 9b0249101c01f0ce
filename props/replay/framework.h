#pragma once

#include <string_view>

#include "model/event.h"
#include "model/names.h"
#include "sim/trace/record.h"

namespace zeroproof {

// Whose design a recorded job promises.
enum class Framework { plain, ddp, fsdp2, deepspeed };

// "plain", "ddp", "fsdp2", "deepspeed".
std::string_view framework_name(Framework framework);

// Tells the framework by the header (producer.framework, producer.deepspeed, stage) and, where that
// says nothing, by the first event that only one of them writes.
class FrameworkFinder {
 public:
  explicit FrameworkFinder(const HeaderRecord& header);

  void on_event(const HookEvent& event, const NameTable& names) {
    if (!is_certain_) look_at(event, names);
  }
  Framework framework() const { return framework_; }

 private:
  void look_at(const HookEvent& event, const NameTable& names);
  void settle(Framework framework);

  Framework framework_ = Framework::plain;
  bool is_certain_ = false;
};

}  // namespace zeroproof
