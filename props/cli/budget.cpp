#include "props/cli/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "props/cli/common_flags.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kNanosecondsASecond = 1'000'000'000;
constexpr std::uint64_t kSecondsMax = 100'000'000;

enum class Unit { executions, steps, seconds, minutes };

struct UnitName {
  std::string_view name;
  Unit unit;
};

constexpr std::array kUnits = {UnitName{"step", Unit::steps}, UnitName{"x", Unit::executions},
                               UnitName{"s", Unit::seconds}, UnitName{"m", Unit::minutes}};

Result<void> add_part(std::string_view part, SearchBudget& budget) {
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [&](const UnitName& one) { return part.ends_with(one.name); });
  const auto count = unit == kUnits.end()
                         ? Result<std::uint64_t>(fail(ErrorCode::usage, ""))
                         : parse_count(part.substr(0, part.size() - unit->name.size()), "");
  if (!count || *count == 0) {
    return fail(
        ErrorCode::usage,
        fmt::format("--budget: '{}' is no budget: write 60s, 5m, 10000x or 100Mstep", part));
  }
  const bool is_time = unit->unit == Unit::seconds || unit->unit == Unit::minutes;
  const std::uint64_t scale = unit->unit == Unit::minutes ? 60 : 1;
  if (unit->unit == Unit::executions) budget.work.executions = *count;
  if (unit->unit == Unit::steps) budget.work.steps = *count;
  if (is_time) {
    const std::uint64_t seconds = std::min(std::min(*count, kSecondsMax) * scale, kSecondsMax);
    budget.time_ns = static_cast<std::int64_t>(seconds) * kNanosecondsASecond;
  }
  return {};
}

}  // namespace

Result<SearchBudget> parse_budget(std::string_view text) {
  SearchBudget budget;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    if (auto added = add_part(part, budget); !added) return tl::unexpected(added.error());
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return budget;
}

}  // namespace zeroproof
