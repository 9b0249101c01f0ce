#include "props/mutation/fault.h"

#include <algorithm>
#include <memory>
#include <span>

#include "model/check.h"
#include "props/mutation/active_fault.h"
#include "props/mutation/decorators.h"
#include "props/mutation/fault_table.h"
#include "props/registry.h"
#include "props/run_properties.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof::mutation {
namespace {

constexpr std::string_view kCanary = "A00";

// "h16@pr7886" and "h16@deepspeed-0.19.2" mean the hazard under the policy that behaves so.
std::string canonical_id(std::string_view id) {
  const std::size_t at = id.find('@');
  if (at == std::string_view::npos) return std::string(id);
  return std::string(id.substr(0, at + 1)) + policy_id(id.substr(at + 1));
}

// Of a fault that names no property: it is not known beforehand what has to catch it.
std::string_view any_property() {
  static const std::string kNumbers = [] {
    std::string joined;
    for (const auto& properties : {std::span(all_properties()), run_properties()})
      for (const Property& property : properties) joined.append(property.number).append(" ");
    return joined;
  }();
  return kNumbers;
}

class ActiveRanks final : public train::RankScope {
 public:
  explicit ActiveRanks(int number) : scope_(number) {}

 private:
  FaultScope scope_;
};

train::AutogradApi api_of(const WovenFault& woven) {
  if (woven.api == "none") return train::AutogradApi::none;
  if (woven.api == "no_callback") return train::AutogradApi::no_callback;
  ZP_CHECK(woven.api == "full", "a fault names an autograd API: " + std::string(woven.id));
  return train::AutogradApi::full;
}

Fault fault_of(const WovenFault& woven) {
  Fault fault{.id = woven.id,
              .sentence = woven.sentence,
              .properties = woven.properties,
              .is_woven = woven.is_woven,
              .decorator = woven.decorator,
              .quirks = woven.quirks,
              .policy = woven.policy,
              .api = api_of(woven),
              .reason = woven.reason,
              .larger = woven.larger};
  if (fault.is_further() && fault.properties.empty()) fault.properties = any_property();
  if (woven.is_woven)
    fault.subject.enter = [number = woven.number] { return std::make_unique<ActiveRanks>(number); };
  if (!woven.decorator.empty())
    ZP_CHECK(add_decorator(woven.decorator, fault.subject),
             "a fault names a decorator that exists: " + std::string(woven.id));
  return fault;
}

}  // namespace

const CatalogueRow& Fault::row() const {
  static constexpr CatalogueRow kOfNoCatalogue{.id = "U", .slug = "further", .tier = 0};
  static constexpr CatalogueRow kHazard{.id = "hazard", .slug = "docs/reference/hazards.md"};
  if (is_further()) return kOfNoCatalogue;
  if (is_hazard()) return kHazard;
  const CatalogueRow* const found = find_row(id.substr(0, 3));
  ZP_CHECK(found, "a fault is of the catalogue: " + std::string(id));
  return *found;
}

const std::vector<Fault>& catalogue_faults() {
  static const std::vector<Fault> kAll = [] {
    std::vector<Fault> faults;
    for (const WovenFault& woven : fault_table())
      if (const Fault fault = fault_of(woven); !fault.is_further() && fault.id != kCanary)
        faults.push_back(fault);
    for (const CatalogueRow& row : bug_catalogue())
      if (std::ranges::none_of(faults, [&](const Fault& it) { return it.id.starts_with(row.id); }))
        faults.push_back({.id = row.id, .reason = "no fault of our engine says it yet"});
    std::ranges::stable_sort(faults, {}, &Fault::id);
    return faults;
  }();
  return kAll;
}

const std::vector<Fault>& further_faults() {
  static const std::vector<Fault> kAll = [] {
    std::vector<Fault> faults;
    for (const WovenFault& woven : fault_table())
      if (const Fault fault = fault_of(woven); fault.is_further()) faults.push_back(fault);
    return faults;
  }();
  return kAll;
}

const Fault& canary() {
  static const Fault kCanaryFault = [] {
    const auto at = std::ranges::find(fault_table(), kCanary, &WovenFault::id);
    ZP_CHECK(at != fault_table().end(), "the table has the canary");
    return fault_of(*at);
  }();
  return kCanaryFault;
}

std::vector<const Fault*> hunted_faults() {
  std::vector<const Fault*> hunted;
  for (const Fault& fault : catalogue_faults()) hunted.push_back(&fault);
  for (const Fault& fault : further_faults()) hunted.push_back(&fault);
  return hunted;
}

std::vector<const Fault*> named_faults() {
  std::vector<const Fault*> named = hunted_faults();
  for (const Fault& fault : hazards()) named.push_back(&fault);
  return named;
}

const Fault* find_fault(std::string_view id) {
  const std::string canonical = canonical_id(id);
  if (canonical == canary().id) return &canary();
  for (const Fault* fault : named_faults())
    if (fault->id == canonical) return fault;
  return nullptr;
}

void mutate(const Fault* fault, train::TrainCell& cell) {
  if (!fault) return;
  const auto quirks = Quirks::parse(fault->quirks);
  ZP_CHECK(quirks.has_value(), "a fault names quirks that exist: " + std::string(fault->id));
  cell.quirks = *quirks;
  cell.policy = fault->policy;
  if (fault->api != train::AutogradApi::full) cell.api = fault->api;
  cell.subject = &fault->subject;
}

}  // namespace zeroproof::mutation
