#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroproof/props/property.h"

namespace zeroproof {

// What a training run did, as far as it says which properties its numbers speak about.
struct TrainFacts {
  std::string scenario;  // in the words of `zeroproof train --scenario`: "gas2", "two_losses"
  int stage = 0;
  int world_size = 1;
  std::int64_t gradient_accumulation_steps = 1;
  std::int64_t forwards = 1;  // of a window
  bool is_scaled = false;     // by a loss scale or a GradScaler
  bool is_manual = false;     // tensor.backward instead of engine.backward
  bool is_managed = true;
  bool is_offloaded = false;
  std::string refusal =
      {};  // the documented error that has to end the program: "backward_without_loss_scaling"

  // What came out; an absent one was not looked at.
  std::optional<bool> is_equal = std::nullopt;         // to the unsharded baseline, in all windows
  std::string difference = {};                         // the worst one, in a few words
  std::optional<bool> has_equal_ranks = std::nullopt;  // parameters, bitwise, after the last step
  std::optional<bool> has_equal_step_counts =
      std::nullopt;  // of the optimizer's parts with the engine's
  std::optional<bool> has_equal_orders = std::nullopt;  // in another legal order of the nodes
  std::string order_difference = {};                    // of that order, in a few words
  std::optional<bool> was_refused = std::nullopt;       // on every rank, with `refusal`
};

// One verdict a property of the scope train, in catalogue order.
std::vector<Verdict> judge_training(const TrainFacts& facts);

}  // namespace zeroproof
