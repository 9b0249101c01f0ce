#include "props/train/case_root.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kRootStream = 0x726f6f74ULL;

void own_weight(CaseSpec& spec, Draws& draws) {
  spec.owns = draws.between(1, 2);
}

// In stage 3, between blocks that put off what is reduced.
void own_in_blocks(CaseSpec& spec, Draws& draws) {
  own_weight(spec, draws);
  spec.stage = 3;
  spec.persistence = draws.of({0, 0, 0, 3});
  for (MicroSpec& micro : spec.micros)
    micro.block = static_cast<int>(draws.one_in(2) ? Block::coalesced : Block::coalesced_backwards);
}

// A window to which nothing comes, under every kind of loss scale.
void rest(CaseSpec& spec, Draws& draws) {
  spec.precision = draws.below(4);
  if (draws.one_in(2)) spec.is_dynamic = spec.has_grad_scaler = 0;
  const auto first = spec.micros;
  if (spec.windows() < 2) spec.micros.insert(spec.micros.end(), first.begin(), first.end());
  const auto accumulation = static_cast<std::size_t>(spec.accumulation);
  const auto window = static_cast<std::size_t>(draws.below(spec.windows()));
  for (std::size_t i = 0; i < accumulation; ++i)
    spec.micros[window * accumulation + i] = {.rests = 1};
}

bool rests_alone(const MicroSpec& micro) {
  return micro == MicroSpec{.peeks = micro.peeks, .rests = 1};
}

// Below stage 2 a window's last backward reduces what the others left, and has to come.
bool rests_through(const CaseSpec& spec, std::size_t window) {
  const auto all = std::span(spec.micros)
                       .subspan(window * static_cast<std::size_t>(spec.accumulation),
                                static_cast<std::size_t>(spec.accumulation));
  const auto resting = std::ranges::count_if(all, &MicroSpec::rests);
  return resting == 0 || resting == spec.accumulation || spec.stage >= 2;
}

}  // namespace

Additions root_additions() {
  static constexpr Addition kRoots[] = {{2, own_weight}, {4, own_in_blocks}, {3, rest}};
  return {kRootStream, 6, kRoots};
}

// Tiles, skipped frames and transforms have no forward of the root that is theirs.
std::string root_problem(const CaseSpec& spec) {
  if (spec.owns < 0 || spec.owns > 2) return "a number out of range";
  for (const MicroSpec& micro : spec.micros)
    if (micro.rests != 0 && (!rests_alone(micro) || spec.needs_all + spec.is_strict != 0))
      return "a rest in which something comes";
  for (std::size_t i = 0; i < static_cast<std::size_t>(spec.windows()); ++i)
    if (!rests_through(spec, i)) return "a rest of the backward that reduces";
  if (spec.owns == 0) return {};
  const auto transforms = [](const MicroSpec& micro) { return micro.idle_forward >= 3; };
  const bool is_right = spec.experts + spec.skips_frames + spec.is_tiled == 0 &&
                        std::ranges::none_of(spec.micros, transforms);
  return is_right ? "" : "a weight of a root that does not run";
}

}  // namespace zeroproof::train
