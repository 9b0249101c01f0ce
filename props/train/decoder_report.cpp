#include "props/train/decoder_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/runtime/process/byte_strings.h"
#include "model/cpu_ops.h"
#include "props/train/cell_run.h"
#include "props/train/decoder_trace.h"
#include "props/train/gathered_ranks.h"
#include "props/train/initial_state.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/engine/runtime/process/job.h"

namespace zeroproof::train {
namespace {

std::optional<IterationTimes> times_of(std::vector<std::int64_t> iterations_ns) {
  if (iterations_ns.empty()) return std::nullopt;
  std::ranges::sort(iterations_ns);
  constexpr double kNsPerMs = 1e6;
  const auto ms_at = [&](std::size_t i) {
    return static_cast<double>(iterations_ns[i]) / kNsPerMs;
  };
  const std::size_t count = iterations_ns.size();
  return IterationTimes{.steps = count,
                        .median_ms = (ms_at((count - 1) / 2) + ms_at(count / 2)) / 2.0,
                        .least_ms = ms_at(0),
                        .most_ms = ms_at(count - 1)};
}

// Of each iteration the rank that took longest: without collectives the others do not wait for it.
std::vector<std::int64_t> slowest(const std::vector<DecoderRank>& ranks) {
  std::vector<std::int64_t> most;
  for (const DecoderRank& rank : ranks) {
    most.resize(std::max(most.size(), rank.iterations_ns.size()));
    for (std::size_t i = 0; i < rank.iterations_ns.size(); ++i)
      most[i] = std::max(most[i], rank.iterations_ns[i]);
  }
  return most;
}

// Over the ranks that ran in this process.
std::vector<double> mean_losses(const DecoderCell& cell, const std::vector<DecoderRank>& ranks) {
  std::vector<double> means(static_cast<std::size_t>(cell.steps), 0.0);
  const auto here = std::ranges::count_if(ranks, has_run);
  for (const DecoderRank& rank : ranks) {
    const std::size_t forwards = rank.losses.size() / means.size();
    const double parts = static_cast<double>(forwards) * static_cast<double>(here);
    for (std::size_t i = 0; i < rank.losses.size(); ++i)
      means[i / forwards] += rank.losses[i] / parts;
  }
  return means;
}

bool is_below(const DecoderDistance& distance, const DecoderBound& bound) {
  return distance.is_bitwise ||
         (distance.loss <= bound.loss && distance.parameter <= bound.parameter);
}

HostWorldOptions host_options(const DecoderCell& cell) {
  HostWorldOptions options;
  options.world_size = cell.world_size;
  options.device = Device::cpu();
  options.timeout_ms = cell.timeout_ms;
  options.job = cell.job;
  return options;
}

CudaWorldOptions cuda_options(const DecoderCell& cell) {
  CudaWorldOptions options;
  options.world_size = cell.world_size;
  options.timeout_ms = cell.timeout_ms;
  options.collectives = cell.collectives;
  return options;
}

Result<DecoderReport> record_decoder(const DecoderCell& cell, const std::string& path) {
  std::vector<int> here;
  if (cell.job) here = {cell.job->rank()};
  auto traces = DecoderTraces::create(path, cell, cell.gpus ? "cuda" : "cpu", here);
  const Result<void> own = traces ? Result<void>() : tl::unexpected(traces.error());
  if (auto made = agree(cell.job.get(), own); !made) return tl::unexpected(made.error());
  const DecoderRunOptions run{.recorders = (*traces)->recorders()};
  std::vector<DecoderRank> ranks;
  if (cell.gpus) {
    CudaWorldOptions options = cuda_options(cell);
    options.observers = (*traces)->observers();
    CudaWorld world(options, *cell.gpus);
    ranks = run_decoder(world, cell, run);
  } else {
    HostWorldOptions options = host_options(cell);
    options.observers = (*traces)->observers();
    HostWorld world(options);
    ranks = run_decoder(world, cell, run);
  }
  gather_ranks(cell.job.get(), ranks);
  const auto written = agree(cell.job.get(), (*traces)->finish());
  if (!written) return tl::unexpected(written.error());
  return report_of(cell, ranks);
}

}  // namespace

DecoderReport report_of(const DecoderCell& cell, const std::vector<DecoderRank>& ranks) {
  DecoderReport report{.cell = cell};
  if (const auto failed = first_failed(ranks); failed != ranks.end()) {
    report.status = CellStatus::failed;
    report.error = fmt::format("rank {}: {}", failed - ranks.begin(), text_of(failed->error));
    return report;
  }
  report.losses = mean_losses(cell, ranks);
  const auto first = std::ranges::find_if(ranks, has_run);
  if (first == ranks.end()) return report;
  report.times = times_of(slowest(ranks));
  report.live_bytes = first->memory.live_bytes;
  report.peak_bytes = first->memory.peak_bytes;
  return report;
}

void check_truth(const std::vector<DecoderRank>& ranks, const Ops& ops, Arithmetic arithmetic,
                 DecoderReport& report) {
  const DecoderCell& cell = report.cell;
  const DecoderBound bound = bound_of(cell.precision);
  report.from_ranks = distance_of(ranks, run_decoder_truth(cell, cell.world_size, ops));
  report.from_batch = distance_of(ranks, run_decoder_truth(cell, 1, ops));
  const bool is_equal = arithmetic == Arithmetic::same ? report.from_ranks->is_bitwise
                                                       : is_below(*report.from_ranks, bound);
  if (is_equal && is_below(*report.from_batch, bound)) return;
  report.status = CellStatus::different;
  report.error = is_equal ? "the run differs from the unsharded one on the concatenated batch"
                          : "the run differs from the unsharded one, rank by rank";
}

namespace {

DecoderRunOptions run_options(const DecoderOptions& options) {
  return {.collects_parameters = options.checks_baseline,
          .is_timed = options.is_timed,
          .warmup_steps = options.warmup_steps};
}

// Rank 0 has every loss and the parameters; it alone compares, and all have its verdict.
template <class Check>
void check_on_first(const DecoderCell& cell, DecoderReport& report, Check check) {
  if (!cell.job) return check();
  if (cell.job->rank() == 0) check();
  const auto verdict = unpack(cell.job->broadcast(
      pack({report.status == CellStatus::equal ? "equal" : "different", report.error})));
  if (verdict.value().at(0) != "equal") report.status = CellStatus::different;
  report.error = verdict->at(1);
}

DecoderReport train_on_host(const DecoderCell& cell, const DecoderOptions& options) {
  HostWorld world(host_options(cell));
  std::vector<DecoderRank> ranks = run_decoder(world, cell, run_options(options));
  gather_ranks(cell.job.get(), ranks);
  DecoderReport report = report_of(cell, ranks);
  if (!options.checks_baseline || report.status != CellStatus::equal) return report;
  check_on_first(cell, report, [&] { check_truth(ranks, CpuOps(), Arithmetic::same, report); });
  return report;
}

bool has_copies(const DecoderCell& cell) {
  return cell.collectives == CudaCollectives::copies && cell.gpus->reach_each_other();
}

// Two ranks add up in one way only. Copies are summed in rank order; the order in which NCCL adds
// more than two is its own.
Arithmetic sum_order(const DecoderCell& cell) {
  return has_copies(cell) || cell.world_size <= 2 ? Arithmetic::same : Arithmetic::other;
}

// The truth is trained on the first GPU, with the same arithmetic.
DecoderReport train_on_cuda(const DecoderCell& cell, const DecoderOptions& options) {
  CudaWorldOptions world_options = cuda_options(cell);
  world_options.is_poisoned = !options.is_timed;
  world_options.arithmetic = {.is_deterministic = !options.is_timed, .uses_cudnn = cell.uses_cudnn};
  world_options.leaves_out_collectives = options.leaves_out_collectives;
  std::vector<DecoderRank> ranks;
  std::int64_t gpu_peak = 0;
  {
    CudaWorld world(world_options, *cell.gpus);
    cell.gpus->reset_peak();
    ranks = run_decoder(world, cell, run_options(options));
    gpu_peak = cell.gpus->peak_bytes();
  }
  gather_ranks(cell.job.get(), ranks);
  DecoderReport report = report_of(cell, ranks);
  report.gpu_peak_bytes = gpu_peak;
  if (cell.world_size > 1) report.collectives = has_copies(cell) ? "copies" : "nccl";
  if (!options.checks_baseline || report.status != CellStatus::equal) return report;
  world_options.world_size = 1;
  check_on_first(cell, report, [&] {
    CudaWorld alone(world_options, *cell.gpus);
    alone.run(
        [&](Runtime& runtime) { check_truth(ranks, runtime.ops(), sum_order(cell), report); });
  });
  return report;
}

// By the first process alone; all of them end where it cannot be written.
Result<void> write_initial(const DecoderCell& cell, const std::string& path) {
  const bool is_writer = !cell.job || cell.job->rank() == 0;
  Result<void> written;
  if (is_writer) written = write_initial_state(cell, path);
  return agree(cell.job.get(), written);
}

Result<DecoderReport> train_here(const DecoderCell& cell, const DecoderOptions& options) {
  if (!options.initial_path.empty())
    if (const auto written = write_initial(cell, options.initial_path); !written)
      return tl::unexpected(written.error());
  if (!options.trace_path.empty()) {
    auto recorded = record_decoder(cell, options.trace_path);
    const bool is_over = !recorded || (cell.job && recorded->is_bad());
    if (is_over || !options.checks_baseline) return recorded;
  }
  return cell.gpus ? train_on_cuda(cell, options) : train_on_host(cell, options);
}

}  // namespace

Result<DecoderReport> train_decoder(const DecoderCell& cell, const DecoderOptions& options) {
  if (!cell.job) return train_here(cell, options);
  try {
    return train_here(cell, options);
  } catch (const RuntimeFault&) {
    const std::string error = tell_others(*cell.job, std::current_exception());
    return DecoderReport{.cell = cell, .status = CellStatus::failed, .error = error};
  }
}

}  // namespace zeroproof::train
