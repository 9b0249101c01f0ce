#include "props/train/user_block.h"

#include "props/train/models.h"

namespace zeroproof::train {
namespace {

void open_from(std::size_t engine, TrainTarget& target, const CaseSpec& spec, Block block,
               const std::function<void()>& body) {
  if (engine == static_cast<std::size_t>(spec.engines)) return body();
  const auto inner = [&] { open_from(engine + 1, target, spec, block, body); };
  if (block == Block::coalesced || block == Block::coalesced_backwards) {
    target.coalesce(engine, inner);
  } else {
    target.no_sync(engine, inner);
  }
}

}  // namespace

void run_in_block(TrainTarget& target, const CaseSpec& spec, const MicroSpec& micro,
                  const std::function<void()>& body) {
  const auto block = static_cast<Block>(micro.block);
  if (block == Block::none) return body();
  if (micro.is_broken == 0) return open_from(0, target, spec, block, body);
  try {
    open_from(0, target, spec, block, [&] {
      body();
      throw Injected("injected behind what a block holds");
    });
  } catch (const Injected&) {
  }
}

}  // namespace zeroproof::train
