#pragma once

#include <string>
#include <string_view>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// When the epilogues of one engine ran, and how often its hooks were counted.
class EpilogueLog final : public EventSink {
 public:
  // `names` must outlive it.
  explicit EpilogueLog(const NameTable& names) : names_(names) {}

  void on_event(const HookEvent& event) override {
    const std::string_view name = names_.text(event.name);
    if (event.kind == EventKind::mark && name.starts_with("count_used_parameters")) ++counts_;
    if (event.kind != EventKind::engine_call) return;
    if (name == "grad_hook") ++hooks_;
    if (name == "engine.backward_epilogue")
      epilogues_ += (epilogues_.empty() ? "a" : ",a") + std::to_string(hooks_);
  }

  // "a4,a8": epilogues after so many gradient hooks each; "none".
  std::string epilogues() const { return epilogues_.empty() ? "none" : epilogues_; }
  int counts() const { return counts_; }

 private:
  const NameTable& names_;
  std::string epilogues_;
  int hooks_ = 0;
  int counts_ = 0;
};

}  // namespace zeroproof
