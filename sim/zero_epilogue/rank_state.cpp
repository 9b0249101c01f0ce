#include "sim/zero_epilogue/rank_state.h"

#include <fmt/format.h>

#include <array>

namespace zeroproof::zero_epilogue {
namespace {

constexpr std::array<std::string_view, kProperties> kNames = {"none", "A1", "A2", "A3", "A4", "A5"};
constexpr std::array<std::string_view, kProperties> kStatements = {
    "no property is violated",
    "the epilogue runs exactly once a rank and pass",
    "no hook of a pass fires after its epilogue",
    "every bucket is reduced when the epilogue returns",
    "the j-th collective is the same bucket on all ranks",
    "every rank comes to its end",
};
constexpr std::array<std::string_view, kEventKinds> kEventText = {
    "choose the counter",   "choose the callback",  "hook {}",
    "reach the next layer", "epilogue by counter",  "epilogue by callback",
    "launch collective {}", "return from epilogue", "complete collective {}",
};

}  // namespace

std::string_view property_name(Property property) {
  return kNames[static_cast<std::size_t>(property)];
}
std::string_view property_statement(Property property) {
  return kStatements[static_cast<std::size_t>(property)];
}

std::string event_text(const Event& event, const RankState& before) {
  const std::string_view words = kEventText[static_cast<std::size_t>(event.what.kind)];
  unsigned number = event.what.hook;
  if (event.what.kind == EventKind::launch) number = before.launched;
  if (event.what.kind == EventKind::complete) number = before.completed;
  return fmt::format(fmt::runtime(words), number) + fmt::format(" on rank {}", event.rank);
}

}  // namespace zeroproof::zero_epilogue
