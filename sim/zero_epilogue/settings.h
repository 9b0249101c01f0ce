#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "zeroproof/model/result.h"

namespace zeroproof::zero_epilogue {

// The orders that the graph allows for the gradient hooks of one rank and pass.
enum class HookOrder : std::uint8_t {
  any,
  chain,      // 0, 1, 2, ...
  spine,      // layer i is reached by a step of its own and has `leaves` hooks
  two_phase,  // a reentrant checkpoint: the first `first_phase` hooks, then the others
};

// What is wrong with the engine: M1 to M9 of docs/spec/explorer.md 1.3.
enum class Defect : std::uint8_t {
  none,
  counter_of_first_phase,  // M1 the counter counts only the first phase
  counter_ignores_queued,  // M2 the counter does not look whether a callback is queued
  callback_on_inner_task,  // M3 the callback is queued on the inner graph task
  return_without_wait,     // M4 the epilogue returns without waiting for the stream
  launch_when_filled,      // M5 buckets are launched in the order in which they fill
  no_flush,                // M6 the partly filled bucket is never flushed
  counter_not_reset,       // M7 the counter is not reset for the second pass
  ignores_already_ran,     // M8 the "already ran" flag is not looked at
  no_flush_when_reversed,  // M9 the flush is lost if the hooks fired in exactly reverse order
};

// One instance of the common model. Plain data.
struct Settings {
  std::uint32_t ranks = 2;
  std::uint32_t hooks = 6;   // a rank and pass
  std::uint32_t bucket = 2;  // hooks a bucket
  std::uint32_t passes = 1;
  std::uint32_t leaves = 2;       // of a layer, HookOrder::spine
  std::uint32_t first_phase = 0;  // 0: half of the hooks
  HookOrder order = HookOrder::any;
  Defect defect = Defect::none;
  bool is_late = false;  // a launch may come at any point after its bucket filled

  std::uint32_t buckets() const { return (hooks + bucket - 1) / bucket; }
  std::uint32_t collectives() const { return buckets() * passes; }
  std::uint32_t phase_hooks() const { return first_phase != 0 ? first_phase : hooks / 2; }
  friend bool operator==(const Settings&, const Settings&) = default;
};

// Words "P=2", "N=10", "B=", "K=", "W=", "N1=", "order=any|chain|spine|two_phase", "late=0|1",
// "defect=none|M1..M9". Code usage; the message names the word and what is allowed.
Result<Settings> parse_settings(std::span<const std::string> words);

// The same words, for reports and tokens: every setting that is not the default, P and N always.
std::string settings_text(const Settings& settings);

std::string_view order_name(HookOrder order);
std::string_view defect_name(Defect defect);  // "none", "M1", ...

// One sentence: what is wrong.
std::string_view defect_sentence(Defect defect);

}  // namespace zeroproof::zero_epilogue
