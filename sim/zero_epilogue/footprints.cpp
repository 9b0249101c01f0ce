#include "sim/zero_epilogue/footprints.h"

namespace zeroproof::zero_epilogue {
namespace {

enum class Object : std::uint32_t { engine, launches, completions };

constexpr std::uint32_t object(Object kind, std::size_t rank) {
  return static_cast<std::uint32_t>(rank * 3) + static_cast<std::uint32_t>(kind);
}

constexpr std::uint32_t kCollectives = 3 * kRanksMax;  // object numbers from here on

}  // namespace

Footprint footprint_of(const Ranks& ranks, const Digits& digits, const Event& event) {
  return footprint_of(ranks.rules(), event.rank, event.what.kind,
                      ranks.automaton().facts(digits[event.rank]));
}

Footprint footprint_of(const RankRules& rules, std::size_t rank, EventKind kind,
                       const LocalFacts& facts) {
  Footprint footprint;
  if (kind == EventKind::complete) {
    footprint.push_back({object(Object::completions, rank), Touch::add});
    for (std::size_t other = 0; other < rules.settings().ranks; ++other) {
      footprint.push_back({object(Object::launches, other), Touch::await, facts.completed + 1U});
    }
    return footprint;
  }
  footprint.push_back({object(Object::engine, rank), Touch::write});
  if (kind == EventKind::launch) {
    footprint.push_back({object(Object::launches, rank), Touch::add});
    if (rules.has_tags()) footprint.push_back({kCollectives + facts.launched, Touch::write});
  }
  if (kind == EventKind::finish) {
    const Touch touch = rules.returns_unwaited() ? Touch::read : Touch::await;
    footprint.push_back({object(Object::completions, rank), touch, facts.launched});
  }
  return footprint;
}

}  // namespace zeroproof::zero_epilogue
