#include "sim/world/rank_task.h"

#include <fmt/format.h>

#include <utility>

#include "engine/runtime/host/rendezvous.h"
#include "model/check.h"

namespace zeroproof::sim {
namespace {

constexpr std::uint64_t kAgents = 1U << 20;  // more than streams of a rank

}  // namespace

RankTask::RankTask(int rank, const SimRuntimeOptions& options, SimWorld& world)
    : rank_(rank), name_(fmt::format("r{}", rank)), world_(world), runtime_(options, *this) {}

void RankTask::step(const SeamStep& call) {
  raise_if_woken();
  if (!fiber_) return;  // a call from outside a run
  const auto place = static_cast<std::uint64_t>(rank_) << 48 |
                     static_cast<std::uint64_t>(call.stream) << 8 |
                     static_cast<std::uint64_t>(call.op);
  world_.trace_.add(place);
  world_.trace_.add(static_cast<std::uint64_t>(call.subject));
  history_.add(1);
  ++world_.steps_;
  if (world_.preemption_ == Preemption::at_every_call) {
    fiber_->suspend();
    raise_if_woken();
  }
}

void RankTask::block_on(StreamEvent event) {
  runtime_.streams().advance();
  while (!runtime_.streams().is_reached(event)) {
    raise_if_woken();
    ZP_CHECK(fiber_, "a wait outside a run");
    awaited_ = event;
    fiber_->suspend();
    awaited_.reset();
  }
  raise_if_woken();
}

void RankTask::note(std::uint64_t value) {
  history_.add(value);
  world_.trace_.add(value);
}

void RankTask::note_progress(bool is_done) {
  ZP_CHECK(world_.preemption_ != Preemption::of_ranks,
           "a program that asks how far its queued work is has more orders than those of ranks");
  note(is_done ? 1 : 0);
}

void RankTask::reach(SeamCall call) {
  if (world_.faults_) world_.faults_->reach(rank_, call);
}

void RankTask::report(FindingKind kind, std::string text) {
  world_.report({kind, rank_, std::move(text), world_.steps()});
}

std::size_t RankTask::choose(const ChoicePoint& at) {
  raise_if_woken();
  ++world_.steps_;
  const std::size_t choice = world_.chooser_.choose({at.site, at.options, StateSource::of(world_)});
  history_.add(2 + choice);
  turns_.add(kAgents + choice);
  world_.trace_.add(choice);
  return choice;
}

void RankTask::start(const SimWorld::Program& program) {
  awaited_.reset();
  is_woken_ = false;
  fiber_ = std::make_unique<Fiber>([this, program] { run(program); });
}

void RankTask::run(const SimWorld::Program& program) {
  try {
    program(runtime_);
  } catch (...) {
    error_ = std::current_exception();
  }
}

bool RankTask::is_ready() const {
  if (is_done()) return false;
  return is_woken_ || !awaited_ || runtime_.streams().is_reached(*awaited_);
}

void RankTask::wake(const std::string& failure) {
  if (is_woken_) return;
  is_woken_ = true;
  failure_ = failure;
  runtime_.streams().clear();
}

void RankTask::raise_if_woken() const {
  if (!is_woken_) return;
  if (failure_.empty()) throw ExecutionCut();
  throw host::GroupAborted(failure_);
}

Fingerprint RankTask::fingerprint() const {
  History all = history_;
  // What its program does after its last call is visible by this alone.
  if (is_done() || is_woken_) all.add(kAgents + (is_done() ? 2 : 0) + (is_woken_ ? 1 : 0));
  for (const auto& stream : runtime_.streams().all())
    if (stream) all.add(stream->runs());
  return all.value();
}

}  // namespace zeroproof::sim
