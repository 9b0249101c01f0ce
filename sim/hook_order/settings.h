#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "zeroproof/engine/quirks.h"
#include "zeroproof/model/result.h"

namespace zeroproof::hook_order {

// Which orders the gradient hooks of the ranks may come in.
enum class Order : std::uint8_t {
  any,   // on each rank any, whatever the others do
  same,  // any, but one for all ranks: they run one program
};

// What is wrong below the engine, to see that the properties notice. Quirks are what is wrong in
// it.
enum class Defect : std::uint8_t {
  none,
  lost_wait,    // a stream does not wait for the events of others
  lost_hook,    // the last rank never fires its last hook
  split_task,   // the last rank's last hook fires in a graph task of its own, after the others'
  double_hook,  // the last rank's last hook fires twice
};

// One instance: P ranks with real engines, N parameters of E elements, K backwards into a window.
// Plain data.
struct Settings {
  static constexpr std::uint32_t kRanksMax = 8;
  static constexpr std::uint32_t kHooksMax = 64;

  std::uint32_t ranks = 2;
  std::uint32_t hooks = 8;   // a rank and pass
  std::uint32_t bucket = 2;  // hooks a bucket
  std::uint32_t passes = 1;
  std::uint32_t elements = 1;  // of each parameter
  std::uint32_t stage = 1;
  Order order = Order::any;
  bool has_overlap = false;
  Quirks quirks;
  Defect defect = Defect::none;

  bool is_any_order() const { return order == Order::any; }
  bool has_defects() const { return defect != Defect::none || !quirks.is_empty(); }
};

// Words "P=2", "N=8", "B=", "K=", "E=", "stage=1|2|3", "order=any|same", "overlap=0|1",
// "quirks=h4,h13", "defect=none|lost_wait|...". Code usage; the message names the word.
Result<Settings> parse_settings(std::span<const std::string> words);

// The same words: P, N and stage always, the others where they are not the default.
std::string settings_text(const Settings& settings);

std::string_view defect_sentence(Defect defect);

}  // namespace zeroproof::hook_order
