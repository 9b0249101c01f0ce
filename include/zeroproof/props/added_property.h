#pragma once

#include <memory>
#include <span>

#include "zeroproof/props/monitor.h"
#include "zeroproof/props/property.h"

namespace zeroproof {

// A property in one source file of props/added (docs/tutorial/add_a_property.md). An object at
// namespace scope puts it after P87 of the catalogue; one that is made after main() began is not
// seen. Its id and number have to be new, and its strings static.
class AddedProperty {
 public:
  // Monitored by one MonitorType an execution, in every scope of the property.
  template <class MonitorType>
  static AddedProperty of(const Property& property) {
    return {property, [](const Monitor::Context& context) -> std::unique_ptr<Monitor> {
              return std::make_unique<MonitorType>(context);
            }};
  }

 private:
  AddedProperty(const Property& property, MonitorFactory factory);
};

struct AddedEntry {
  Property property;
  MonitorFactory factory = nullptr;
};

// All that were made, by their ids.
std::span<const AddedEntry> added_properties();

}  // namespace zeroproof
