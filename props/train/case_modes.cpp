#include "props/train/case_modes.h"

#include <algorithm>

#include "props/train/case_additions.h"
#include "props/train/config_document.h"
#include "props/train/config_readings.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kModeStream = 0x6d6f646573ULL;

void differentiate_by_hand(CaseSpec& spec, Draws& draws) {
  spec.is_manual = 0;
  for (MicroSpec& micro : spec.micros) {
    micro.by_hand = draws.flag(2);
    if (micro.by_hand != 0) micro.is_undivided = micro.creates = micro.wrapped = 0;
  }
}

// A backward of the second engine fails inside one of the first, and a manual one follows.
void fail_among_manual(CaseSpec& spec, Draws& draws) {
  spec.engines = 2;
  spec.is_manual = spec.is_tiled = spec.tile_wrap = 0;
  for (MicroSpec& micro : spec.micros) {
    micro.by_hand = draws.flag(2);
    if (draws.one_in(2)) continue;
    micro.interrupt = static_cast<int>(Interrupt::fails);
    micro.interrupt_at = some_call(spec, draws);
  }
}

void read_configuration(CaseSpec& spec, Draws& draws) {
  spec.is_read = draws.between(1, 1 + kReadingParts);
  spec.bucket = std::max(spec.bucket, 1);        // 0 is refused, as by DeepSpeed 0.19.6
  spec.sub_group = std::max(spec.sub_group, 1);  // 0 is read as 1
  if (draws.one_in(2)) spec.refuses = draws.between(1, kRefusedConfigs);
  spec.accepts = draws.flag(3);
}

void refuse_manual(CaseSpec& spec, Draws& draws) {
  spec.is_manual = 0;
  spec.counts_nothing = spec.stage == 0 ? 0 : draws.between(1, 2);
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2))
      micro.misuse =
          static_cast<int>(draws.one_in(2) ? Misuse::manual_backward : Misuse::past_manual);
}

std::string by_hand_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (!is_flag(micro.by_hand)) return "a number out of range";
  const bool is_scaled_twice =
      static_cast<Precision>(spec.precision) == Precision::fp16 && spec.engines > 1;
  const bool is_right = spec.stage > 0 && spec.is_manual == 0 && spec.is_tiled == 0 &&
                        spec.counts_nothing == 0 && spec.has_grad_scaler == 0 &&
                        micro.is_undivided + micro.creates + micro.wrapped == 0 &&
                        micro.aborts_managed == 0 && !is_scaled_twice;
  return micro.by_hand == 0 || is_right ? "" : "a manual backward among what has none";
}

}  // namespace

Additions mode_additions() {
  static constexpr Addition kModes[] = {{2, differentiate_by_hand},
                                        {3, fail_among_manual},
                                        {3, refuse_manual},
                                        {2, read_configuration}};
  return {kModeStream, 4, kModes};
}

std::string mode_problem(const CaseSpec& spec) {
  if (spec.counts_nothing < 0 || spec.counts_nothing > 2 || spec.is_read < 0 ||
      spec.is_read > 1 + kReadingParts || spec.refuses < 0 || spec.refuses > kRefusedConfigs ||
      !is_flag(spec.accepts))
    return "a number out of range";
  if (spec.is_read != 0 && (spec.bucket == 0 || spec.sub_group == 0))
    return "a size of 0 that no document keeps";
  if (spec.engines > 1 && spec.is_tiled != 0) return "tiles whose loss is one of two";
  if (spec.counts_nothing != 0 && (spec.is_manual != 0 || spec.stage == 0 || spec.engines > 1))
    return "nobody who counts";
  const auto leaves_engine = [](const MicroSpec& micro) { return micro.past_engine != 0; };
  if (spec.counts_nothing != 0 && std::ranges::any_of(spec.micros, leaves_engine))
    return "nobody who counts";
  for (const MicroSpec& micro : spec.micros)
    if (std::string problem = by_hand_problem(spec, micro); !problem.empty()) return problem;
  return {};
}

std::string manual_backward_problem(const CaseSpec& spec, Misuse misuse) {
  const bool is_refused = spec.stage == 0 || spec.counts_nothing != 0;
  const LayerSpec& first = spec.layers.front();
  const bool has_loss =
      misuse != Misuse::past_manual ||
      (first.is_frozen == 0 && first.outputs > 0 && !leaves_out(spec) && spec.stage < 3);
  return is_refused && has_loss && spec.engines == 1 && spec.is_tiled == 0 && spec.skips_frames == 0
             ? ""
             : "a manual backward that may be";
}

}  // namespace zeroproof::train
