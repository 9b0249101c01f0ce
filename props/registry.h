#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "props/protocol_view.h"
#include "zeroproof/model/event.h"
#include "zeroproof/props/monitor.h"
#include "zeroproof/props/property.h"

namespace zeroproof {

// The catalogue, in the order of their numbers, and what props/added adds. Static.
std::span<const Property> all_properties();

// By id ("epilogue.once_after_last_hook") or number ("P2"); null when there is none.
const Property* find_property(std::string_view id_or_number);

// Null for properties that compare several traces (P26, P45, P67), see replay/properties_level.h,
// and for those of the scopes train and access.
std::unique_ptr<Monitor> make_monitor(const Monitor::Context& context);

// All properties of one scope over the events of one rank of one execution. Feed it every event;
// then `finish`, then `verdicts`. Not thread-safe; memory is bounded by what is open.
class PropertyRun final : public EventSink {
 public:
  // `names` holds the names of the events and must outlive the run.
  PropertyRun(Scope scope, const NameTable& names);

  // Both: see ProtocolView.
  void declare_param(std::string_view name) { view_.declare_param(name); }

  void declare_bypass(NameId param) { view_.declare_bypass(param); }

  void on_event(const HookEvent& event) override;
  void finish();

  // One verdict a property that has a monitor in this scope, in catalogue order.
  std::vector<Verdict> verdicts() const;

  // Whether a property is falsified already.
  bool is_falsified() const;

  const ProtocolView& view() const { return view_; }

  // Everything that can influence a later verdict, so that an explorer can prune.
  void append_state(std::string& bytes) const;

 private:
  ProtocolView view_;
  std::vector<std::unique_ptr<Monitor>> monitors_;
};

}  // namespace zeroproof
