#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "props/train/layer.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/quirks.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/result.h"

namespace zeroproof::train {

struct Subject;  // props/train/subject.h

enum class Precision : std::uint8_t { float32, bf16, fp16, autocast };
enum class BackwardKind : std::uint8_t { engine, tensor };
enum class AutogradApi : std::uint8_t { full, none, no_callback };

std::string_view precision_name(Precision precision);
std::string_view backward_name(BackwardKind backward);
std::string_view data_name(DataMode data);
Result<Precision> precision_of(std::string_view name);

// Of parameters and inputs; and of gradients on the wire, of layers that autocast covers.
DType model_dtype(Precision precision);
DType wire_dtype(Precision precision);

// Who decides in the simulator: what goes on, which queued work completes (site "world.next").
struct SimOrder {
  std::string scheduler = "fifo";  // fifo, random, pct:D or replay:FILE
  std::uint64_t seed = 0;
  bool preempts = true;      // before every call that others may see; else only where a rank waits
  bool is_of_ranks = false;  // where it does not preempt: see Preemption::of_ranks
  bool has_late_compute = false;  // see SimWorldOptions
};

// One cell of the equality matrix, and how its engines are made. Plain data.
struct TrainCell {
  std::string scenario = "plain";
  int stage = 2;
  int world_size = 2;
  int sequence_degree = 1;  // ranks that share a sequence, and gradients of one loss
  int tensor_degree = 1;    // ranks of each tensor-parallel group; they train the same
  Precision precision = Precision::float32;
  BackwardKind backward = BackwardKind::engine;
  DataMode data = DataMode::exact;
  std::int64_t steps = 3;
  std::uint64_t seed = 7;
  std::string policy = "exact";
  Quirks quirks = {};
  const Subject* subject = nullptr;  // null: plain engines; must outlive the cell
  AutogradApi api = AutogradApi::full;
  FallbackRule fallback_rule = FallbackRule::per_graph;
  // Nodes that may run next do so in the random order of this seed; none: as PyTorch orders them.
  std::optional<std::uint64_t> order_seed = std::nullopt;
  std::optional<SimOrder> sim = std::nullopt;  // on the simulator; none: on the host runtime
  // What tensors count as living on, whatever keeps their elements.
  Device device = Device::cpu();
  std::optional<Gpus> gpus =
      std::nullopt;  // one for each rank, in place of the host's threads alone
  CudaCollectives collectives = CudaCollectives::copies;  // between those GPUs
  std::shared_ptr<Job> job = nullptr;  // whose processes the ranks are; null: threads of this one
  std::int64_t timeout_ms = 60'000;    // of a rank that waits for others
  // In place of the built-in one; stage, precision and what the scenario needs are set on top.
  std::optional<ZeroConfig> config = std::nullopt;

  int data_ranks() const { return world_size / tensor_degree; }
};

// The flags of `zeroproof train` that lead to this cell.
std::string flags_of(const TrainCell& cell);

}  // namespace zeroproof::train
