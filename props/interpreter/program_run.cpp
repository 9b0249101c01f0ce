#include "props/interpreter/program_run.h"

#include <algorithm>
#include <utility>

#include "engine/runtime/host/shared_files.h"
#include "model/check.h"
#include "props/interpreter/interpreter.h"
#include "props/reference/reference_target.h"
#include "props/train/kept_files.h"
#include "props/train/subject.h"
#include "sim/world/sim_world.h"

namespace zeroproof::program {
namespace {

constexpr std::int64_t kHostTimeoutMs = 10'000;  // of a rank that waits for others

ParallelDegrees degrees_of(const World& world) {
  return {.sequence = world.sequence, .tensor = world.tensor};
}

// What runs on one rank, in whatever world.
class RankProgram {
 public:
  RankProgram(const RunnableProgram& runnable, const RunnableProgram::Segment& segment,
              const RunOptions& options, FileSystem& files)
      : runnable_(runnable), segment_(segment), options_(options), files_(files) {}

  void operator()(Runtime& runtime, RankRun& run) const {
    const train::Subject* const subject = options_.variant.subject;
    const std::unique_ptr<Runtime> decorated =
        subject && subject->decorate_runtime ? subject->decorate_runtime(runtime) : nullptr;
    EngineTarget::Options target_options{
        .observes = options_.observes, .files = &files_, .device = options_.device};
    if (options_.watch) {
      train::EngineTarget::Options watched;
      options_.watch->attach(static_cast<std::size_t>(runtime.rank()), watched);
      target_options.models = watched.models;
      target_options.autograd = watched.autograd;
    }
    EngineTarget target(runnable_.program(), segment_.config, options_.variant, runnable_.data(),
                        decorated ? *decorated : runtime, target_options);
    interpret(target, runtime.memory(), run);
  }

 private:
  void interpret(EngineTarget& target, const Memory& memory, RankRun& run) const {
    Interpreter interpreter(runnable_.program(), runnable_.contract(), runnable_.data(),
                            {.ranks = segment_.ranks, .stage = segment_.config.stage}, target);
    try {
      if (segment_.resumes) target.load_resumed(*segment_.resumes);
      std::size_t begin = segment_.begin;
      for (const std::size_t rest : options_.rests) {
        if (rest < begin) continue;
        interpreter.run(begin, rest + 1);
        run.rest_bytes.push_back(memory.stats(Placement::device).live_bytes);
        begin = rest + 1;
      }
      interpreter.run(begin, segment_.end);
    } catch (...) {
      run.seen = interpreter.take_seen();
      run.error = std::current_exception();
      if (!is_engine_error(run.error)) throw;  // the world ends the others
      return;
    }
    run.seen = interpreter.take_seen();
  }

  // An error of the engine comes to every rank by itself.
  static bool is_engine_error(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const EngineError&) {
      return true;
    } catch (...) {
      return false;
    }
  }

  const RunnableProgram& runnable_;
  const RunnableProgram::Segment& segment_;
  const RunOptions& options_;
  FileSystem& files_;
};

template <class World>
void run_ranks(World& world, const RunOptions& options, const RankProgram& program,
               SegmentRun& run) {
  const train::RankScopes scopes(options.variant.subject);
  const auto errors = world.try_run([&](Runtime& runtime) {
    const auto scope = scopes.of_rank();
    program(runtime, run.ranks[static_cast<std::size_t>(runtime.rank())]);
  });
  for (std::size_t rank = 0; rank < errors.size(); ++rank)
    if (errors[rank]) run.ranks[rank].error = errors[rank];
}

SegmentRun run_segment(const RunnableProgram& runnable, const RunnableProgram::Segment& segment,
                       const RunOptions& options, FileSystem& files, std::uint64_t& steps) {
  const World& world = runnable.program().world;
  const int ranks = segment.ranks * world.tensor;
  const RankProgram program(runnable, segment, options, files);
  SegmentRun run;
  run.ranks.resize(static_cast<std::size_t>(ranks));
  std::vector<RankObservers> observers;
  if (options.watch) observers = options.watch->observers();
  if (options.chooser) {
    SimWorldOptions sim{.world_size = segment.ranks * world.tensor,
                        .degrees = degrees_of(world),
                        .device = options.device,
                        .observers = std::move(observers)};
    sim.preemption = options.preempts ? Preemption::at_every_call : Preemption::when_blocked;
    SimWorld simulated(sim, *options.chooser);
    run_ranks(simulated, options, program, run);
    run.findings = simulated.findings();
    steps += simulated.steps();
    return run;
  }
  if (options.gpus) {
    CudaWorldOptions cuda{.world_size = segment.ranks * world.tensor, .degrees = degrees_of(world)};
    cuda.device = options.device;
    cuda.observers = std::move(observers);
    CudaWorld cards(cuda, *options.gpus);
    run_ranks(cards, options, program, run);
    return run;
  }
  HostWorldOptions host{.world_size = segment.ranks * world.tensor, .degrees = degrees_of(world)};
  host.timeout_ms = kHostTimeoutMs;
  host.device = options.device;
  host.observers = std::move(observers);
  HostWorld threads(host);
  run_ranks(threads, options, program, run);
  return run;
}

}  // namespace

bool SegmentRun::has_failed() const {
  return !findings.empty() ||
         std::ranges::any_of(ranks, [](const RankRun& rank) { return rank.error != nullptr; });
}

RunnableProgram::RunnableProgram(Program program) : program_(std::move(program)), data_(program_) {}

RunnableProgram::RunnableProgram(Program program, const DataPlan& data, DataChange change)
    : program_(std::move(program)), data_(program_, data, std::move(change)) {}

Result<std::unique_ptr<RunnableProgram>> RunnableProgram::make_beside(Program program,
                                                                      const RunnableProgram& other,
                                                                      DataChange change) {
  auto runnable =
      std::make_unique<RunnableProgram>(std::move(program), other.data(), std::move(change));
  if (auto prepared = runnable->prepare(); !prepared) return tl::unexpected(prepared.error());
  return runnable;
}

Result<std::unique_ptr<RunnableProgram>> RunnableProgram::make(Program program) {
  auto runnable = std::make_unique<RunnableProgram>(std::move(program));
  if (auto prepared = runnable->prepare(); !prepared) return tl::unexpected(prepared.error());
  return runnable;
}

Result<void> RunnableProgram::prepare() {
  auto contract = Contract::of(program_);
  if (!contract) return tl::unexpected(contract.error());
  contract_ = std::move(*contract);
  segments_.push_back({.ranks = program_.world.ranks, .config = program_.config});
  for (std::size_t i = 0; i < program_.body.size(); ++i) {
    const auto* const resume = std::get_if<Resume>(&program_.body[i].kind);
    if (!resume) continue;
    segments_.back().end = i;
    Segment next{.begin = i + 1, .ranks = resume->ranks, .config = program_.config};
    next.config.stage = resume->stage;
    next.resumes = resume->tag;
    segments_.push_back(std::move(next));
  }
  segments_.back().end = program_.body.size();
  return {};
}

ProgramRun run_program(const RunnableProgram& runnable, const RunOptions& options) {
  ProgramRun run;
  train::KeptFiles kept;
  SharedFiles files(kept);
  for (std::size_t i = 0; i < runnable.segments().size(); ++i) {
    RunOptions of_segment = options;
    if (i + 1 < runnable.segments().size()) {
      of_segment.watch = nullptr;
      of_segment.rests.clear();
    }
    run.segments.push_back(
        run_segment(runnable, runnable.segments()[i], of_segment, files, run.steps));
    if (run.has_failed()) break;
  }
  return run;
}

std::vector<std::vector<Observations>> run_reference(const RunnableProgram& runnable) {
  std::vector<std::vector<Observations>> segments;
  reference::SavedStates saved;  // of rank 0, as all ranks have the same
  for (const RunnableProgram::Segment& segment : runnable.segments()) {
    std::vector<Observations> seen(static_cast<std::size_t>(segment.ranks));
    std::vector<reference::SavedStates> of_ranks(seen.size(), saved);
    reference::run_ranks(segment.ranks, [&](int rank, reference::Meetings& meetings) {
      const auto at = static_cast<std::size_t>(rank);
      reference::ReferenceTarget target(runnable.program(), segment.config,
                                        {.ranks = segment.ranks, .rank = rank}, runnable.data(),
                                        meetings, of_ranks[at]);
      if (segment.resumes) target.load_resumed(*segment.resumes);
      Interpreter interpreter(runnable.program(), runnable.contract(), runnable.data(),
                              {.ranks = segment.ranks, .stage = segment.config.stage}, target);
      interpreter.run(segment.begin, segment.end);
      seen[at] = interpreter.take_seen();
    });
    saved = std::move(of_ranks.front());
    segments.push_back(std::move(seen));
  }
  return segments;
}

}  // namespace zeroproof::program
