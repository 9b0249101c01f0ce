// `zeroproof train` and `zeroproof record`: the engine on a small model, against the baseline.
#include <fmt/format.h>

#include "engine/quirk_effect.h"
#include "engine/runtime/registry.h"
#include "props/cli/interrupt.h"
#include "props/cli/mutated_engine.h"
#include "props/cli/policy_flag.h"
#include "props/cli/train_config.h"
#include "props/cli/train_job.h"
#include "props/cli/train_model.h"
#include "props/cli/verb.h"
#include "props/report/progress.h"
#include "props/report/train_report.h"
#include "sim/scheduler.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {
namespace {

using train::CellStatus;
using train::TrainCell;
using train::TrainReport;

constexpr std::uint64_t kMostRanks = 64;
constexpr std::uint64_t kMostSteps = 1000;

ExitCode exit_code_of(const TrainReport& report) {
  if (report.is_bad()) return ExitCode::falsified;
  switch (report.status) {
    case CellStatus::equal:
      return ExitCode::held;
    case CellStatus::different:
    case CellStatus::failed:
      return ExitCode::falsified;
    case CellStatus::refused:
    case CellStatus::not_applicable:
      break;
  }
  return ExitCode::usage;
}

class TrainVerb final : public Verb {
 public:
  explicit TrainVerb(bool is_recording) : is_recording_(is_recording) {}

  void declare(Flags& flags) override {
    flags.add_value("scenario", scenario_, {"NAME", "program to train (default plain), or all"});
    flags.add_value("stage", stage_, {"N", "ZeRO stage (default 2)", {"0", "1", "2", "3"}});
    flags.add_value("world-size", world_size_, {"N", "ranks (default 2)"});
    flags.add_value(
        "dtype", dtype_,
        {"DTYPE", "precision (default float32)", {"float32", "bf16", "fp16", "autocast"}});
    flags.add_value("backward", backward_,
                    {"WHO", "engine.backward (default) or tensor.backward", {"engine", "tensor"}});
    flags.add_value(
        "data", data_,
        {"MODE", "exact (default): sums are exact in every order; or real", {"exact", "real"}});
    flags.add_value("steps", steps_, {"N", "optimizer steps (default 3)"});
    flags.add_value("order-seed", order_seed_,
                    {"N", "run autograd nodes in random legal orders of this seed"});
    flags.add_value("runtime", runtime_,
                    {"NAME",
                     "host (default): a thread a rank; sim: one thread, chosen orders; cuda: GPUs",
                     {"host", "sim", "cuda"}});
    flags.add_value("collectives", collectives_,
                    {"NAME",
                     "--runtime cuda: copies (default), summed in rank order, if the GPUs reach "
                     "each other's memory; or nccl",
                     {"copies", "nccl"}});
    flags.add_value("device", device_,
                    {"DEVICE",
                     "device that tensors report: cpu, or cuda (always with --runtime cuda)",
                     {"cpu", "cuda"}});
    flags.add_value("scheduler", scheduler_,
                    {"SPEC", "--runtime sim: fifo (default), random, pct:D, replay:FILE"});
    flags.add_value("schedule-seed", schedule_seed_,
                    {"N", "--runtime sim: seed of random and pct (default 0)"});
    flags.add_switch("no-preemption", has_no_preemption_,
                     "--runtime sim: a rank gives way only where it waits");
    declare_engine(flags);
    flags.add_switch("check-baseline", checks_.has_baseline, "compare with the unsharded baseline");
    flags.add_switch("check-properties", checks_.has_properties,
                     "check the properties of every rank's events too");
    flags.add_value(
        "trace", trace_path_,
        {"FILE", is_recording_
                     ? "file of the trace (required); several ranks add _r0, _r1, … to its name"
                     : "write a trace; several ranks add _r0, _r1, … to its name"});
    model_.declare(flags);
    job_.declare(flags);
    if (is_recording_) return;
    flags.add_value(
        "matrix", matrix_,
        {"SIZE", "run many configurations; a flag above fixes its axis", {"pairwise", "full"}});
  }

  Result<VerbResult> run(Session& session) override {
    if (auto read = job_.read(runtime_); !read) return tl::unexpected(read.error());
    if (auto usable = check_runtime(); !usable) return tl::unexpected(usable.error());
    if (is_recording_ && trace_path_.empty())
      return fail(ErrorCode::usage, "record: --trace: name the file to write");
    const char* for_all = !matrix_.empty()         ? "matrix"
                          : scenario_ == "all"     ? "scenario all"
                          : checks_.has_properties ? "check-properties"
                                                   : nullptr;
    if (auto fits = job_.check_alone(for_all); !fits) return tl::unexpected(fits.error());
    auto cell = read_cell();
    if (!cell) return tl::unexpected(cell.error());
    if (auto placed = place(*cell); !placed) return tl::unexpected(placed.error());
    job_.repeat_all(session);
    if (model_.is_given()) return run_model(*cell, session);
    if (const auto fits = model_.check_alone(); !fits) return tl::unexpected(fits.error());
    if (!matrix_.empty() || scenario_ == "all") return run_cells(*cell, session);
    return run_one(*cell, session);
  }

 private:
  // Looking for GPUs starts CUDA's driver: only for who asks.
  // Of several processes each says what it found when they have met: see Gpus::open.
  Result<void> check_runtime() const {
    if (runtime_ != "cuda" || job_.has_several()) return {};
    const RuntimeInfo* info = find_runtime(runtime_);
    if (info != nullptr && info->is_available) return {};
    return fail(ErrorCode::cannot_run,
                fmt::format("train: --runtime {}: {}", runtime_,
                            info == nullptr ? "no runtime has that name" : info->reason));
  }

  void declare_engine(Flags& flags) {
    add_policy_flag(flags, policy_, "hook policy (default exact)");
    flags.add_value("quirks", quirks_,
                    {"LIST",
                     "hazards of DeepSpeed to switch on: h3,n5, those of deepspeed-0.19.8, or all "
                     "(upstream); default none"});
    flags.add_value(
        "fault", fault_,
        {"ID", "inject a fault of 'zeroproof mutation', with its policy, into every engine"});
    flags.add_value("autograd-api", api_,
                    {"API",
                     "functions that the autograd offers (default full)",
                     {"full", "none", "no_callback"}});
    config_.declare(flags);
  }

  Result<TrainCell> read_cell() {
    TrainCell cell;
    if (scenario_ != "all" && !scenario_.empty()) cell.scenario = scenario_;
    cell.stage = stage_.empty() ? cell.stage : stage_[0] - '0';
    const auto words = job_.world_size(world_size_);
    if (!words) return tl::unexpected(words.error());
    const auto ranks = parse_count(words->empty() ? "2" : *words, "train: --world-size");
    if (!ranks) return tl::unexpected(ranks.error());
    const auto steps = parse_count(steps_, "train: --steps");
    if (!steps) return tl::unexpected(steps.error());
    if (*ranks < 1 || *ranks > kMostRanks || *steps < 1 || *steps > kMostSteps)
      return fail(ErrorCode::usage,
                  fmt::format("train: --world-size {} --steps {}: give 1 to {} ranks and 1 to {} "
                              "steps",
                              *ranks, *steps, kMostRanks, kMostSteps));
    cell.world_size = static_cast<int>(*ranks);
    cell.steps = static_cast<std::int64_t>(*steps);
    const auto precision = train::precision_of(dtype_.empty() ? "float32" : dtype_);
    if (!precision) return tl::unexpected(precision.error());
    cell.precision = *precision;
    if (backward_ == "tensor") cell.backward = train::BackwardKind::tensor;
    if (data_ == "real") cell.data = train::DataMode::real;
    if (api_ == "none") cell.api = train::AutogradApi::none;
    if (api_ == "no_callback") cell.api = train::AutogradApi::no_callback;
    if (!order_seed_.empty()) {
      const auto seed = parse_count(order_seed_, "train: --order-seed");
      if (!seed) return tl::unexpected(seed.error());
      cell.order_seed = *seed;
    }
    if (runtime_ == "sim") {
      const auto order = read_sim_order();
      if (!order) return tl::unexpected(order.error());
      cell.sim = *order;
    }
    if (!collectives_.empty() && runtime_ != "cuda")
      return fail(ErrorCode::usage, "train: --collectives: of GPUs; give --runtime cuda");
    if (collectives_ == "nccl") cell.collectives = CudaCollectives::nccl;
    cell.timeout_ms = job_.timeout_ms();
    cell.policy = policy_;
    const auto quirks = Quirks::parse(quirks_);
    if (!quirks) return tl::unexpected(quirks.error());
    if (const auto fits = check_quirks(*quirks, policy_); !fits)
      return fail(ErrorCode::usage, "train: --quirks: " + fits.error().text);
    cell.quirks = *quirks;
    return set_fault(cell, fault_).and_then([&] { return with_config(std::move(cell)); });
  }

  // With the other processes, if there are any, and on GPUs, if that is asked for.
  Result<void> place(TrainCell& cell) const {
    if (device_ == "cuda" || runtime_ == "cuda") cell.device = Device::cuda(0);
    if (device_ == "cpu" && runtime_ == "cuda")
      return fail(ErrorCode::usage, "train: --device cpu: of --runtime cuda it is cuda");
    auto job = job_.join();
    if (!job) return tl::unexpected(job.error());
    cell.job = std::move(*job);
    if (runtime_ != "cuda") return {};
    const bool takes_all = !matrix_.empty() && world_size_.empty();
    auto gpus = cell.job ? Gpus::open(cell.job)
                         : Gpus::open(takes_all ? std::max(1, visible_gpus()) : cell.world_size);
    if (!gpus) return fail(gpus.error().code, "train: --runtime cuda: " + gpus.error().text);
    cell.gpus = std::move(*gpus);
    return {};
  }

  static std::vector<int> worlds_on(const Gpus& gpus) {
    std::vector<int> worlds;
    for (const int world : {1, 2, 3, 4, 8})
      if (world <= gpus.count()) worlds.push_back(world);
    return worlds;
  }

  Result<train::SimOrder> read_sim_order() const {
    const auto seed = parse_count(schedule_seed_, "train: --schedule-seed");
    if (!seed) return tl::unexpected(seed.error());
    if (const auto known = make_scheduler(scheduler_, *seed); !known)
      return tl::unexpected(known.error());
    return train::SimOrder{.scheduler = scheduler_, .seed = *seed, .preempts = !has_no_preemption_};
  }

  Result<TrainCell> with_config(TrainCell cell) {
    if (auto taken =
            config_.take(cell, {.has_stage = !stage_.empty(), .has_dtype = !dtype_.empty()});
        !taken)
      return tl::unexpected(taken.error());
    return cell;
  }

  Result<VerbResult> run_one(const TrainCell& cell, Session& session) {
    if (const auto fits = config_.fit(cell); !fits) return tl::unexpected(fits.error());
    auto made = train::train(cell, {checks_, trace_path_});
    if (!made) return tl::unexpected(made.error());
    const auto report = std::make_shared<TrainReport>(std::move(*made));
    if (cell.job && cell.job->rank() != 0)
      return quiet_result(exit_code_of(*report), report->error, session);
    return VerbResult{.code = exit_code_of(*report),
                      .text =
                          [this, report, &session] {
                            return session.seed_line() + config_.text() +
                                   train_text(*report, session.palette) +
                                   session.reproduce_line(exit_code_of(*report));
                          },
                      .json = [this, report] { return config_.in_json(train_json(*report)); },
                      .junit = [report] { return train_cases({*report}); },
                      .next = next_of(cell)};
  }

  // The same training in other orders.
  std::string next_of(const TrainCell& cell) const {
    if (is_recording_ || runtime_ == "cuda") return {};
    return fmt::format("explore {} --stage {} --budget 30s  # in other orders", cell.scenario,
                       cell.stage);
  }

  // A flag that means a scenario, or how its runs are ordered and judged.
  std::string_view flag_of_scenarios() const {
    const std::pair<std::string_view, bool> flags[] = {
        {"scenario", !scenario_.empty()},     {"matrix", !matrix_.empty()},
        {"backward", !backward_.empty()},     {"data", !data_.empty()},
        {"order-seed", !order_seed_.empty()}, {"autograd-api", api_ != "full"},
        {"fault", !fault_.empty()},           {"check-properties", checks_.has_properties},
        {"runtime sim", runtime_ == "sim"},
    };
    for (const auto& [flag, is_given] : flags)
      if (is_given) return flag;
    return {};
  }

  Result<VerbResult> run_model(const TrainCell& shared, Session& session) {
    if (const std::string_view flag = flag_of_scenarios(); !flag.empty())
      return fail(ErrorCode::usage,
                  fmt::format("train: --{}: trains scenarios; leave it out, or --model", flag));
    const auto cell = model_.cell_of(shared, session.common.seed);
    if (!cell) return tl::unexpected(cell.error());
    auto options = model_.options(cell->steps);
    if (!options) return tl::unexpected(options.error());
    options->checks_baseline = checks_.has_baseline;
    options->trace_path = trace_path_;
    if (const auto fits = ModelFlags::check_together(*cell, *options); !fits)
      return tl::unexpected(fits.error());
    auto report = train::train_decoder(*cell, *options);
    if (!report) return tl::unexpected(report.error());
    if (cell->job && cell->job->rank() != 0)
      return quiet_result(report->is_bad() ? ExitCode::falsified : ExitCode::held, report->error,
                          session);
    return config_.in_report(result_of(std::move(*report), session));
  }

  Result<VerbResult> run_cells(const TrainCell& base, Session& session) {
    if (!trace_path_.empty())
      return fail(ErrorCode::usage, "train: --trace: one scenario alone, not --matrix or all");
    if (scenario_ != "all" && !scenario_.empty()) {
      if (const auto known = train::find_scenario(scenario_); !known)
        return tl::unexpected(known.error());
    }
    const auto cells = cells_of(base);
    ProgressLine progress(session.common.progress);
    ProgressView view{.task = "train"};
    view.runs_max = cells.size();
    train::MatrixOptions options{.checks = checks_};
    options.checks.has_baseline = true;
    options.on_cell = [&](std::size_t done) {
      view.runs = done;
      progress.update([&] { return view; });
    };
    options.should_stop = was_interrupted;
    const auto report = std::make_shared<train::MatrixReport>(train::run_matrix(cells, options));
    progress.finish(view);
    const ExitCode code = was_interrupted()   ? ExitCode::interrupted
                          : report->is_good() ? ExitCode::held
                                              : ExitCode::falsified;
    return config_.in_report(VerbResult{.code = code,
                                        .text =
                                            [this, report, code, &session] {
                                              return session.seed_line() +
                                                     matrix_text(*report, session.palette) +
                                                     reproduce(*report, code, session);
                                            },
                                        .json = [report] { return matrix_json(*report); },
                                        .junit = [report] { return train_cases(report->cells); }});
  }

  // The first cell that went wrong, alone.
  std::string reproduce(const train::MatrixReport& report, ExitCode code,
                        const Session& session) const {
    for (const TrainReport& cell : report.cells)
      if (exit_code_of(cell) == ExitCode::falsified)
        return fmt::format("reproduce: {} train {}{} --check-{}\n", session.program,
                           train::flags_of(cell.cell), config_.flag(),
                           checks_.has_properties ? "properties" : "baseline");
    return session.reproduce_line(code);
  }

  // `--scenario all` alone: every scenario of one cell. Under --matrix a flag that was given
  // narrows its axis.
  std::vector<TrainCell> cells_of(const TrainCell& base) const {
    const bool is_matrix = !matrix_.empty();
    train::MatrixAxes axes;
    if (!is_matrix || !stage_.empty()) axes.stages = {base.stage};
    if (!is_matrix || !world_size_.empty()) axes.worlds = {base.world_size};
    if (!is_matrix || !dtype_.empty()) axes.precisions = {base.precision};
    if (!is_matrix || !backward_.empty()) axes.backwards = {base.backward};
    if (!is_matrix || !data_.empty()) axes.data = {base.data};
    if (is_matrix && base.gpus && world_size_.empty()) axes.worlds = worlds_on(*base.gpus);
    if (scenario_ == "all") {
      for (const train::TrainScenario& scenario : train::scenario_catalogue())
        axes.scenarios.emplace_back(scenario.name);
    } else if (!scenario_.empty()) {
      axes.scenarios = {scenario_};
    }
    const bool is_pairwise = matrix_ == "pairwise";
    return matrix_cells(is_pairwise ? train::MatrixKind::pairwise : train::MatrixKind::full, axes,
                        base);
  }

  bool is_recording_;
  std::string scenario_;
  std::string stage_;
  std::string world_size_;
  std::string dtype_;
  std::string backward_;
  std::string data_;
  std::string steps_ = "3";
  std::string order_seed_;
  std::string runtime_ = "host";
  std::string device_;
  std::string collectives_;
  std::string scheduler_ = "fifo";
  std::string schedule_seed_ = "0";
  bool has_no_preemption_ = false;
  std::string policy_ = "exact";
  std::string quirks_ = "none";
  std::string fault_;
  std::string api_ = "full";
  std::string trace_path_;
  std::string matrix_;
  ModelFlags model_;
  JobFlags job_;
  ConfigFlags config_;
  train::TrainChecks checks_;
};

}  // namespace

std::unique_ptr<Verb> make_train() {
  return std::make_unique<TrainVerb>(false);
}

std::unique_ptr<Verb> make_record() {
  return std::make_unique<TrainVerb>(true);
}

}  // namespace zeroproof
