#include "sim/world/sim_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "engine/runtime/host/rank_errors.h"
#include "model/check.h"
#include "sim/world/deadlock.h"
#include "sim/world/rank_task.h"

namespace zeroproof {
namespace {

bool is_cut(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ExecutionCut&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

SimWorld::SimWorld(const SimWorldOptions& options, Chooser& chooser)
    : chooser_(chooser),
      faults_(options.faults),
      origin_(options.origin),
      preemption_(options.preemption),
      steps_max_(options.steps_max) {
  ZP_CHECK(
      options.observers.empty() || std::cmp_equal(options.observers.size(), options.world_size),
      "a world has observers for each rank or for none");
  for (int rank = 0; rank < options.world_size; ++rank) {
    const auto observers = options.observers.empty()
                               ? RankObservers{}
                               : options.observers[static_cast<std::size_t>(rank)];
    ranks_.push_back(std::make_unique<sim::RankTask>(
        rank,
        sim::SimRuntimeOptions{
            options.world_size,
            {options.device, options.is_poisoned, options.capacity_bytes, observers.accesses},
            observers,
            options.has_late_compute,
            options.waits_before_first_use},
        *this));
  }
  for (int kind = 0; kind < kGroupKinds; ++kind) make_groups(static_cast<GroupKind>(kind), options);
}

SimWorld::~SimWorld() = default;

void SimWorld::make_groups(GroupKind kind, const SimWorldOptions& options) {
  for (const std::vector<int>& ranks : group_layout(kind, options.world_size, options.degrees)) {
    const auto point = std::make_shared<sim::MeetingPoint>(
        fmt::format("{} group [{}]", host::group_name(kind), fmt::join(ranks, ", ")), ranks.size(),
        options.is_poisoned);
    for (std::size_t i = 0; i < ranks.size(); ++i)
      ranks_[static_cast<std::size_t>(ranks[i])]->runtime().join({kind, ranks, static_cast<int>(i)},
                                                                 point);
  }
}

Runtime& SimWorld::runtime(int rank) {
  ZP_CHECK(rank >= 0 && rank < world_size(), "a rank outside the world");
  return ranks_[static_cast<std::size_t>(rank)]->runtime();
}

Chooser& SimWorld::chooser(int rank) {
  ZP_CHECK(rank >= 0 && rank < world_size(), "a rank outside the world");
  return *ranks_[static_cast<std::size_t>(rank)];
}

void SimWorld::run(const Program& program) {
  host::rethrow_first(try_run(program));
}

std::vector<std::exception_ptr> SimWorld::try_run(const Program& program) {
  for (const auto& rank : ranks_) rank->start(program);
  drive();
  std::vector<std::exception_ptr> errors;
  for (const auto& rank : ranks_) errors.push_back(rank->take_error());
  if (is_cut_) throw ExecutionCut();
  return errors;
}

// ExecutionCut comes from the chooser: here, or through a rank that asked it.
void SimWorld::drive() {
  try {
    while (turn()) {
    }
  } catch (const ExecutionCut&) {
    is_cut_ = true;
  }
  if (is_cut_)
    for (const auto& rank : ranks_) {
      rank->wake("");
      while (!rank->is_done()) rank->resume();
    }
}

// One decision, and what follows from it; false: all have ended.
bool SimWorld::turn() {
  collect_agents();
  if (agents_.empty()) {
    if (std::ranges::all_of(ranks_, [](const auto& rank) { return rank->is_done(); })) return false;
    end_stuck(sim::FindingKind::deadlock, sim::describe_deadlock(ranks_));
    return true;
  }
  if (++steps_ > steps_max_) {
    end_stuck(sim::FindingKind::no_progress,
              fmt::format("the run did not end within {} steps", steps_max_));
    steps_max_ = UINT64_MAX;
    return true;
  }
  const std::size_t choice =
      agents_.size() == 1 ? 0 : chooser_.choose({"world.next", names_, StateSource::of(*this)});
  trace_.add(agents_.size());
  trace_.add(choice);
  const Agent agent = agents_[choice];
  agent.task->note_turn(agent.is_host ? 0 : agent.stream + 1);
  if (!agent.is_host) {
    agent.task->runtime().streams().all()[agent.stream]->run_head();
    return true;
  }
  agent.task->resume();
  if (agent.task->is_done()) finish(*agent.task);
  return !is_cut_;
}

void SimWorld::collect_agents() {
  agents_.clear();
  names_.clear();
  for (const auto& rank : ranks_) {
    if (rank->is_ready()) {
      agents_.push_back({rank.get(), 0, true});
      names_.push_back(rank->name());
    }
    const auto& streams = rank->runtime().streams().all();
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (!streams[s] || !streams[s]->can_run()) continue;
      agents_.push_back({rank.get(), s, false});
      names_.push_back(streams[s]->name());
      if (preemption_ == Preemption::of_ranks) return keep_last_agent();
    }
  }
}

void SimWorld::keep_last_agent() {
  agents_.front() = agents_.back();
  names_.front() = names_.back();
  agents_.resize(1);
  names_.resize(1);
}

void SimWorld::finish(sim::RankTask& task) {
  const std::exception_ptr& error = task.error();
  if (!error) return;
  if (is_cut(error)) {
    is_cut_ = true;
  } else {
    abort_all(host::abort_reason(task.rank(), error));
  }
}

void SimWorld::end_stuck(sim::FindingKind kind, const std::string& text) {
  report({kind, -1, text, steps_});
  abort_all(text);
}

void SimWorld::abort_all(const std::string& reason) {
  for (const auto& rank : ranks_) rank->runtime().abort(reason);
  // With the program of a rank goes what it has queued.
  for (const auto& rank : ranks_) rank->wake(reason);
}

void SimWorld::report(sim::Finding finding) {
  findings_.push_back(std::move(finding));
}

Fingerprint SimWorld::order_class() const {
  sim::History all;
  for (const auto& rank : ranks_) {
    all.add(rank->turns().low);
    all.add(rank->turns().high);
  }
  return all.value();
}

Fingerprint SimWorld::fingerprint() const {
  Fingerprint all = origin_;
  if (faults_) all.low += faults_->fingerprint();
  std::uint64_t number = 0;
  for (const auto& rank : ranks_) {
    const Fingerprint of = rank->fingerprint();
    sim::History history;
    history.add(++number);
    history.add(of.low);
    history.add(of.high);
    all.low += history.value().low;
    all.high += history.value().high;
  }
  return all;
}

}  // namespace zeroproof
