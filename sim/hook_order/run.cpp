#include "sim/hook_order/run.h"

#include <span>

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

  Move choose(Chooser& chooser, std::span<const Move> moves) {
    if (moves.size() == 1) return moves.front();
    world_.count_decision();
    return moves[chooser.choose(
        {"hook_order.next", world_.names_of_moves(), StateSource::of(world_)})];
  }

 private:
  World& world_;
};

}  // namespace

Run run(World& world, Chooser& chooser, const RunOptions& options) {
  Run result;
  Execution execution(world);
  while (world.violated().is_empty() && !world.is_over()) {
    const std::span<const Move> moves = world.enabled();
    if (moves.empty()) break;  // A5
    const Move move = execution.choose(chooser, moves);
    if (options.keeps_moves) result.moves.push_back(move);
    world.take(move);
  }
  for (std::size_t i = 1; i < kProperties && result.violated == Property::none; ++i)
    if (world.violated().has(static_cast<Property>(i))) result.violated = static_cast<Property>(i);
  if (result.violated != Property::none) result.explanation = world.explanation(result.violated);
  if (options.takes_final_state) result.final_state = world.fingerprint();
  return result;
}

}  // namespace zeroproof::hook_order
