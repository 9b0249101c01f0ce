#include "sim/world/fault_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace zeroproof::sim {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames = {
    "exception", "abort",        "timeout",      "allocation",
    "overflow",  "skipped_step", "hook_removal", "destroy"};

}  // namespace

std::string_view fault_name(FaultKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<FaultKind> fault_kind_of(std::string_view name) {
  const auto at = std::ranges::find(kNames, name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<FaultKind>(at - kNames.begin());
}

std::optional<std::vector<FaultKind>> parse_fault_kinds(std::string_view text) {
  std::vector<FaultKind> kinds;
  if (text == "all") {
    for (const std::string_view name : kNames) kinds.push_back(*fault_kind_of(name));
    return kinds;
  }
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto kind = fault_kind_of(text.substr(0, comma));
    if (!kind) return std::nullopt;
    kinds.push_back(*kind);
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  std::ranges::sort(kinds);
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

std::string fault_kinds_text(std::span<const FaultKind> kinds) {
  if (kinds.size() == kFaultKinds) return "all";
  std::string text;
  for (const FaultKind kind : kinds) text.append(text.empty() ? "" : ",").append(fault_name(kind));
  return text;
}

bool ends_program(FaultKind kind, int rank) {
  return kind == FaultKind::abort || kind == FaultKind::timeout ||
         (kind == FaultKind::allocation && rank >= 0);
}

std::string describe(const Fault& fault) {
  const std::string who = fault.rank < 0 ? "all" : fmt::format("r{}", fault.rank);
  return fmt::format("{}.{}.w{}.{}+{}", fault_name(fault.kind), who, fault.window, fault.after,
                     fault.at);
}

}  // namespace zeroproof::sim
