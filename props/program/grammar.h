#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "props/program/policy.h"

namespace zeroproof::program {

class Scene;  // props/program/scene.h

// Where in a window a production may stand.
enum class Position : std::uint8_t {
  training,     // of one engine's micro-batch, in place of a forward and its backward
  aside,        // between two micro-batches
  first_aside,  // before the first micro-batch of a window
  before_step
};

// One way to go on with a program. `make` adds statements and says whether they made sense;
// otherwise they are all removed.
struct Production {
  std::string_view name;  // "no_sync_round"
  std::uint32_t weight = 1;
  std::uint32_t tags = 0;  // bits of Tag: drawn in cases that have one of them
  Position position = Position::aside;
  bool (*enabled)(const Scene& scene) = nullptr;
  bool (*make)(Scene& scene) = nullptr;
  // How often a case is about it: more often where few jobs have a place for it.
  std::uint32_t share = 1;
};

template <class... Tags>
constexpr std::uint32_t tags(Tags... tag) {
  return ((1U << static_cast<unsigned>(tag)) | ...);
}

// All productions, in a fixed order; the first is plain training. Static.
std::span<const Production> grammar();

// Those of one subject (props/program/productions/).
std::span<const Production> accumulation_productions();
std::span<const Production> loss_scaling_productions();
std::span<const Production> checkpoint_productions();
std::span<const Production> nesting_productions();
std::span<const Production> exception_productions();
std::span<const Production> graph_productions();
std::span<const Production> external_productions();
std::span<const Production> inspection_productions();
std::span<const Production> configuration_productions();
std::span<const Production> misuse_productions();

}  // namespace zeroproof::program
