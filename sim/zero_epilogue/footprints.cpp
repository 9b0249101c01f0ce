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
  Footprint footprint;
  if (event.what.kind == EventKind::complete) {
    footprint.push_back({object(Object::completions, event.rank), Touch::add});
    for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
      footprint.push_back({object(Object::launches, rank), Touch::await});
    }
    return footprint;
  }
  footprint.push_back({object(Object::engine, event.rank), Touch::write});
  if (event.what.kind == EventKind::launch) {
    footprint.push_back({object(Object::launches, event.rank), Touch::add});
    const std::uint32_t slot = ranks.automaton().facts(digits[event.rank]).launched;
    if (ranks.rules().has_tags()) footprint.push_back({kCollectives + slot, Touch::write});
  }
  if (event.what.kind == EventKind::finish) {
    const bool is_exact = ranks.rules().returns_unwaited();
    footprint.push_back(
        {object(Object::completions, event.rank), is_exact ? Touch::read : Touch::await});
  }
  return footprint;
}

}  // namespace zeroproof::zero_epilogue
