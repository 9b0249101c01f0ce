#pragma once

#include <memory>
#include <string>
#include <vector>

#include "props/reference/walker.h"
#include "props/train/cell_run.h"
#include "props/train/reference_worlds.h"
#include "props/train/run_judge.h"

namespace zeroproof::reference {

// The events of the first rank of a run, to be changed and walked.
class RecordedRun final : public EventSink {
 public:
  explicit RecordedRun(const train::TrainCell& cell)
      : scenario_(**train::find_scenario(cell.scenario)), cell_(cell) {
    train::RunJudge judge(scenario_, cell_);
    source_ = &judge.rank(0).names();
    judge.rank(0).listen(*this);
    train::run_ranks(scenario_, cell_, {.watch = &judge});
    source_ = nullptr;
  }

  void on_event(const HookEvent& event) override {
    HookEvent copy = event;
    for (NameId* id : {&copy.name, &copy.param, &copy.group, &copy.exception, &copy.message})
      if (!id->is_none()) *id = names.intern(source_->text(*id));
    for (NameId& id : copy.params) id = names.intern(source_->text(id));
    events.push_back(std::move(copy));
  }

  // The place of the n-th event of a kind, and of a name where one is given.
  std::size_t find(EventKind kind, std::string_view name = "", int n = 0) const {
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool is_it =
          events[i].kind == kind && (name.empty() || names.text(events[i].name).starts_with(name));
      if (is_it && n-- == 0) return i;
    }
    throw std::out_of_range("no such event: " + std::string(name));
  }
  HookEvent& at(EventKind kind, std::string_view name = "", int n = 0) {
    return events[find(kind, name, n)];
  }
  void drop(EventKind kind, std::string_view name = "", int n = 0) {
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(find(kind, name, n)));
  }
  // All of them.
  void drop_all(EventKind kind, std::string_view name = "") {
    std::erase_if(events, [&](const HookEvent& event) {
      return event.kind == kind && (name.empty() || names.text(event.name).starts_with(name));
    });
  }
  void repeat(EventKind kind, std::string_view name = "", int n = 0) {
    const std::size_t place = find(kind, name, n);
    const HookEvent event = events[place];
    events.insert(events.begin() + static_cast<std::ptrdiff_t>(place), event);
  }
  void insert_before(std::size_t place, HookEvent event) {
    events.insert(events.begin() + static_cast<std::ptrdiff_t>(place), std::move(event));
  }

  std::vector<World> worlds() const {
    return train::reference_worlds(scenario_, cell_, train::unseen_of(scenario_, cell_));
  }
  std::vector<Finding> walk(const std::vector<World>& worlds) const {
    Walker walker(names, worlds);
    std::uint64_t lc = 0;
    for (HookEvent event : events) {
      event.lc = ++lc;
      walker.on_event(event);
    }
    walker.finish(true);
    return walker.findings();
  }

  NameTable names;
  std::vector<HookEvent> events;

 private:
  const train::TrainScenario& scenario_;
  train::TrainCell cell_;
  const NameTable* source_ = nullptr;
};

}  // namespace zeroproof::reference
