#include "sim/hook_order/run.h"

#include <cstddef>

namespace zeroproof::hook_order {
namespace {

class Execution {
 public:
  explicit Execution(World& world) : world_(world) { world_.begin(); }
  ~Execution() {
    const bool is_suspect = !world_.violated().is_empty() || !world_.settings().quirks.is_empty();
    world_.end();
    if (is_suspect) world_.restore();
  }
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  std::size_t choose(Chooser& chooser, std::size_t moves) {
    if (moves == 1) return 0;
    world_.count_decision();
    return chooser.choose(
        {"hook_order.next", OptionNames::of(world_, moves), StateSource::of(world_)});
  }

 private:
  World& world_;
};

}  // namespace

Run run(World& world, Chooser& chooser, const RunOptions& options) {
  Run result;
  Execution execution(world);
  while (world.violated().is_empty() && !world.is_over()) {
    const std::size_t moves = world.count_enabled();
    if (moves == 0) break;  // A5
    const std::size_t taken = execution.choose(chooser, moves);
    if (options.keeps_moves) result.moves.push_back(world.enabled_at(taken));
    world.take_at(taken);
  }
  for (std::size_t i = 1; i < kProperties && result.violated == Property::none; ++i)
    if (world.violated().has(static_cast<Property>(i))) result.violated = static_cast<Property>(i);
  if (result.violated != Property::none) result.explanation = world.explanation(result.violated);
  if (options.takes_final_state) result.final_state = world.fingerprint();
  return result;
}

}  // namespace zeroproof::hook_order
