#include "props/registry.h"

#include <algorithm>

namespace zeroproof {

const Property* find_property(std::string_view id_or_number) {
  const std::span<const Property> all = all_properties();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Property& property) {
    return property.id == id_or_number || property.number == id_or_number;
  });
  return found == all.end() ? nullptr : &*found;
}

PropertyRun::PropertyRun(Scope scope, const NameTable& names) : view_(names) {
  for (const Property& property : all_properties()) {
    if (!property.scopes.has(scope)) continue;
    if (auto monitor = make_monitor({&property, scope, &names}))
      monitors_.push_back(std::move(monitor));
  }
}

void PropertyRun::on_event(const HookEvent& event) {
  for (const Fact& fact : view_.apply(event))
    for (const auto& monitor : monitors_) monitor->observe(fact);
}

void PropertyRun::finish() {
  for (const auto& monitor : monitors_) monitor->finish(view_.is_quiet());
}

std::vector<Verdict> PropertyRun::verdicts() const {
  std::vector<Verdict> verdicts;
  verdicts.reserve(monitors_.size());
  for (const auto& monitor : monitors_) verdicts.push_back(monitor->verdict());
  return verdicts;
}

bool PropertyRun::is_falsified() const {
  return std::any_of(monitors_.begin(), monitors_.end(),
                     [](const auto& monitor) { return monitor->is_falsified(); });
}

void PropertyRun::append_state(std::string& bytes) const {
  view_.append_state(bytes);
  for (const auto& monitor : monitors_) monitor->append_state(bytes);
}

}  // namespace zeroproof
