#include "props/hunt/case_result.h"

#include <algorithm>
#include <utility>

#include "model/check.h"
#include "props/run_properties.h"

namespace zeroproof::hunt {

void CaseResult::add(std::string_view number, std::string text, int rank) {
  const Property* const property = find_any_property(number);
  ZP_CHECK(property, "a judge names a property of the registry");
  const auto is_it = [&](const Falsified& known) { return known.property == property; };
  if (std::ranges::none_of(falsified, is_it))
    falsified.push_back({property, std::move(text), rank});
}

std::string_view property_of(sim::FindingKind kind) {
  switch (kind) {
    case sim::FindingKind::deadlock:
      return "R2";
    case sim::FindingKind::collective_mismatch:
      return "R3";
    case sim::FindingKind::use_after_free:
      return "R4";
    case sim::FindingKind::no_progress:
      return "R5";
    case sim::FindingKind::out_of_memory:
      break;
  }
  return "R12";
}

const Falsified* CaseResult::find(std::string_view numbers) const {
  if (numbers.empty()) return falsified.empty() ? nullptr : &falsified.front();
  while (!numbers.empty()) {
    const std::size_t end = std::min(numbers.find(' '), numbers.size());
    const std::string_view number = numbers.substr(0, end);
    for (const Falsified& one : falsified)
      if (one.property->number == number) return &one;
    numbers.remove_prefix(std::min(end + 1, numbers.size()));
  }
  return nullptr;
}

}  // namespace zeroproof::hunt
