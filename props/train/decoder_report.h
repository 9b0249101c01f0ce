#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "props/train/decoder_truth.h"
#include "props/train/train_run.h"

namespace zeroproof::train {

struct IterationTimes {
  std::size_t steps = 0;
  double median_ms = 0.0;
  double least_ms = 0.0;
  double most_ms = 0.0;
};

struct DecoderReport {
  DecoderCell cell;
  CellStatus status = CellStatus::equal;  // or different, failed
  std::string error = {};                 // why; one line
  std::vector<double> losses = {};        // mean over ranks and accumulated forwards, by step
  std::optional<DecoderDistance> from_ranks = {};  // from the truth with a share for each rank
  std::optional<DecoderDistance> from_batch = {};  // from the truth in one share
  std::optional<IterationTimes> times = {};        // of the first rank that ran here
  std::int64_t live_bytes = 0;                     // of its device at the end
  std::int64_t peak_bytes = 0;
  // How GPUs reduce and gather, "copies" or "nccl"; empty where they do not.
  std::string collectives;
  // Of the GPU of rank 0, with the activations (Gpus::peak_bytes); 0 on the host.
  std::int64_t gpu_peak_bytes = 0;

  bool is_bad() const { return status != CellStatus::equal; }
};

// What a run left, before anything is compared.
DecoderReport report_of(const DecoderCell& cell, const std::vector<DecoderRank>& ranks);

// Compares a run that collected its parameters with both truths, made by `ops`. Bit for bit with
// the first where the ranks' arithmetic is that of `ops`, else within the bound.
enum class Arithmetic : bool { same, other };
void check_truth(const std::vector<DecoderRank>& ranks, const Ops& ops, Arithmetic arithmetic,
                 DecoderReport& report);

struct DecoderOptions {
  bool checks_baseline = false;
  bool is_timed = false;
  std::int64_t warmup_steps = 0;
  bool leaves_out_collectives = false;  // of GPUs, to time a step without them
  std::string initial_path =
      {};  // empty for none; where weights and batches go before the first step
  std::string trace_path = {};  // empty for none; of a run of its own, without any comparison
};

// On the host runtime, a thread a rank, or on GPUs; with a job its ranks are processes, each of
// which calls this and has the losses, times and verdict of all. An error is a trace that cannot be
// written.
Result<DecoderReport> train_decoder(const DecoderCell& cell, const DecoderOptions& options);

}  // namespace zeroproof::train
