#include "props/replay/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "props/replay/engine_finder.h"
#include "props/replay/moment.h"
#include "sim/trace/reader.h"
#include "zeroproof/engine/hooks/hook_policy.h"

namespace zeroproof {
namespace {

constexpr std::size_t kLinesMax = 40;

using TaskEngine = std::pair<GraphTaskId, EngineId>;

// How many hooks each graph task fires for each engine, and whose events they are.
class HookCounter {
 public:
  void on_event(const HookEvent& event, EngineId engine, std::string_view name) {
    if (event.kind == EventKind::engine_call && name == "grad_hook")
      fired_[{event.graph_task, engine}].insert(event.param);
    constexpr std::string_view kCount = "count_used_parameters:";
    if (event.kind != EventKind::mark || !name.starts_with(kCount)) return;
    std::int32_t count = 0;
    std::from_chars(name.data() + kCount.size(), name.data() + name.size(), count);
    std::int32_t& known = counted_[{event.graph_task, engine}];
    known = std::max(known, count);
  }

  std::int32_t expected(TaskEngine key) const {
    const auto fired = fired_.find(key);
    const auto counted = counted_.find(key);
    const auto seen = fired == fired_.end() ? 0 : static_cast<std::int32_t>(fired->second.size());
    return std::max(seen, counted == counted_.end() ? 0 : counted->second);
  }

 private:
  std::map<TaskEngine, std::set<NameId>> fired_;
  std::map<TaskEngine, std::int32_t> counted_;  // what a task that failed would have fired
};

// One engine under the policy.
class DrivenEngine final : public HookHost {
 public:
  DrivenEngine(EngineId id, std::unique_ptr<HookPolicy> policy, PolicyMode mode,
               const HookCounter& counter)
      : id_(id), policy_(std::move(policy)), mode_(mode), counter_(counter) {
    tracker_.set_running_mark(policy_->running_mark());
  }

  HookPolicy& policy() { return *policy_; }
  bool is_backward_marked() const { return tracker_.is_backward_marked(); }

  void begin_task(GraphTaskId task) {
    task_ = task;
    tracker_.begin_task(task);
    policy_->on_graph_task_begin(*this, task);
  }
  void end_task(GraphTaskId task, bool raised, GraphTaskId parent) {
    task_ = parent;
    policy_->on_graph_task_end(*this, task, raised);
    tracker_.end_task(task, raised);
  }
  void begin_forward() {
    policy_->on_forward_begin(*this);
    tracker_.begin_forward();
  }
  void end_forward() {
    if (tracker_.has_open_forward()) tracker_.end_forward();
    policy_->on_forward_end(*this);
  }
  void begin_backward() { tracker_.begin_backward(); }
  void end_backward(bool raised) {
    tracker_.end_backward(raised);
    policy_->on_backward_end(*this, raised);
  }
  int take_queued() { return std::exchange(queued_, 0); }

  // The output hook: once a forward or once a graph task, as the policy has it.
  void on_output_hook(bool is_recorded_prologue) {
    const bool is_per_task = policy_->prologue_rule() == PrologueRule::once_per_graph_task;
    if (is_per_task ? !prologues_.insert(task_).second : !is_recorded_prologue) return;
    tracker_.run_prologue();
    policy_->on_prologue(*this);
  }

  void begin_hook(const std::string& param) {
    refresh_ = policy_->before_gradient(*this);
    unreduced_.push_back(param);
    ++hooks_in_backward_;
    last_param_ = param;
  }
  void end_hook() { policy_->after_gradient(*this, refresh_); }

  void run_epilogue(bool is_automatic) {
    epilogues_.push_back({hooks_in_backward_, is_automatic, task_, last_param_});
    unreduced_.clear();
    policy_->on_epilogue(*this);
  }

  bool has_callback_api() const override { return mode_ == PolicyMode::graph_task_callback; }
  GraphTaskId current_graph_task() const override { return task_; }
  void queue_callback() override { ++queued_; }
  std::int32_t count_expected_hooks() override { return counter_.expected({task_, id_}); }
  void run_post_hook() override {
    if (is_backward_marked() || policy_->skips_manual_epilogue()) return;
    run_epilogue(true);
  }
  void abandon_gradients() override {
    abandoned_ = unreduced_;
    unreduced_.clear();
  }

  struct Epilogue {
    std::uint64_t hooks_before = 0;
    bool is_automatic = false;
    GraphTaskId task;
    std::string param;  // of the last hook before it
  };

  std::vector<Epilogue> take_epilogues() {
    hooks_in_backward_ = 0;
    return std::exchange(epilogues_, {});
  }
  std::uint64_t hooks_in_backward() const { return hooks_in_backward_; }
  const std::vector<std::string>& unreduced() const { return unreduced_; }
  std::vector<std::string> take_unreduced() { return std::exchange(unreduced_, {}); }
  std::vector<std::string> take_abandoned() { return std::exchange(abandoned_, {}); }

 private:
  EngineId id_;
  std::unique_ptr<HookPolicy> policy_;
  PolicyMode mode_;
  const HookCounter& counter_;
  GraphTaskId task_;
  int queued_ = 0;
  bool refresh_ = false;
  std::set<GraphTaskId> prologues_;
  std::vector<std::string> unreduced_;
  std::vector<std::string> abandoned_;
  std::vector<Epilogue> epilogues_;
  std::uint64_t hooks_in_backward_ = 0;
  std::string last_param_;
};

class WhatIf {
 public:
  WhatIf(WhatIfReport& report, const NameTable& names, const HookCounter& counter)
      : report_(report), names_(names), counter_(counter) {}

  void on_event(const HookEvent& event, EngineId engine) {
    const std::string_view name = names_.text(event.name);
    switch (event.kind) {
      case EventKind::gt_begin:
        return begin_task(event);
      case EventKind::gt_end:
        return end_task(event);
      case EventKind::engine_call:
        return on_call(event, engine, name);
      case EventKind::engine_return:
        return on_return(event, engine, name);
      default:
        return;
    }
  }

  void finish(std::uint64_t lc) {
    for (auto& [id, engine] : engines_) report_missed(id, *engine, lc, "the end of the trace");
  }

 private:
  struct OpenTask {
    GraphTaskId id;
    std::uint64_t lc = 0;
    std::vector<EngineId> callbacks;
  };

  DrivenEngine& engine(EngineId id) {
    auto& made = engines_[id];
    if (!made) {
      auto policy = make_policy(report_.policy, report_.mode);
      made = std::make_unique<DrivenEngine>(id, std::move(*policy), report_.mode, counter_);
      for (const OpenTask& task : tasks_) made->begin_task(task.id);
    }
    return *made;
  }

  GraphTaskId current() const { return tasks_.empty() ? GraphTaskId::none() : tasks_.back().id; }

  void begin_task(const HookEvent& event) {
    if (tasks_.empty()) hooks_before_ = report_.hooks;
    tasks_.push_back({event.graph_task, event.lc, {}});
    for (auto& [id, one] : engines_) one->begin_task(current());
  }

  void end_task(const HookEvent& event) {
    if (tasks_.empty()) return;
    if (!event.is_exceptional()) run_callbacks();
    const OpenTask ended = std::move(tasks_.back());
    tasks_.pop_back();
    for (auto& [id, one] : engines_) {
      one->take_queued();  // of a node that raised
      one->end_task(ended.id, event.is_exceptional(), current());
    }
    collect();
    for (auto& [id, one] : engines_)
      if (auto dropped = one->take_abandoned(); !dropped.empty())
        say(fmt::format("lc {}: the backward failed; the policy drops {} and goes on clean",
                        event.lc, listed(dropped)));
    if (tasks_.empty()) summarize(ended, event);
  }

  void run_callbacks() {
    for (std::size_t at = 0; at < tasks_.back().callbacks.size(); ++at) {
      DrivenEngine& owner = engine(tasks_.back().callbacks[at]);
      owner.policy().on_final_callback(owner);
      collect();
    }
  }

  void collect() {
    for (auto& [id, one] : engines_)
      for (int left = one->take_queued(); left > 0; --left)
        if (!tasks_.empty()) tasks_.back().callbacks.push_back(id);
  }

  void on_call(const HookEvent& event, EngineId id, std::string_view name) {
    if (event.transforms > 0) return;
    if (name == "engine.forward") {
      engine(id).begin_forward();
    } else if (name == "engine.backward") {
      engine(id).begin_backward();
    } else if (name == "engine.backward_prologue" ||
               name == "engine.backward_prologue_per_tensor") {
      engine(id).on_output_hook(name == "engine.backward_prologue");
    } else if (name == "grad_hook") {
      ++report_.hooks;
      engine(id).begin_hook(std::string(names_.text(event.param)));
    } else if (name == "engine.step") {
      on_step(event, id);
    } else {
      return;
    }
    collect();
  }

  void on_return(const HookEvent& event, EngineId id, std::string_view name) {
    if (event.transforms > 0) return;
    DrivenEngine& owner = engine(id);
    if (name == "engine.forward") {
      owner.end_forward();
    } else if (name == "grad_hook") {
      owner.end_hook();
    } else if (name == "engine.backward") {
      const bool raised = event.is_exceptional();
      if (!raised) owner.run_epilogue(false);
      owner.end_backward(raised);
      if (!raised) tell_explicit(owner, event);
    } else {
      return;
    }
    collect();
  }

  void tell_explicit(DrivenEngine& owner, const HookEvent& event) {
    for (const DrivenEngine::Epilogue& epilogue : owner.take_epilogues()) {
      ++report_.epilogues;
      if (!epilogue.is_automatic)
        say(fmt::format("lc {}: engine.backward ends: explicit epilogue", event.lc));
    }
  }

  // One outermost backward in words.
  void summarize(const OpenTask& task, const HookEvent& end) {
    const std::uint64_t hooks = report_.hooks - hooks_before_;
    if (hooks == 0) return;
    ++report_.backwards;
    for (auto& [id, one] : engines_) {
      if (one->is_backward_marked()) continue;  // its explicit epilogue follows
      const std::uint64_t own = one->hooks_in_backward();
      const auto epilogues = one->take_epilogues();
      if (own == 0 && epilogues.empty()) continue;
      tell_backward(task, end, id, own, epilogues, *one);
    }
  }

  void tell_backward(const OpenTask& task, const HookEvent& end, EngineId id, std::uint64_t hooks,
                     const std::vector<DrivenEngine::Epilogue>& epilogues,
                     const DrivenEngine& one) {
    report_.epilogues += epilogues.size();
    std::string line = fmt::format(
        "backward {} (graph task {}, lc {} to {}{}): ", report_.backwards, task.id.value, task.lc,
        end.lc, id.value > 0 ? fmt::format(", engine {}", id.value) : "");
    if (epilogues.empty()) {
      line += end.is_exceptional() ? "it fails; no epilogue"
                                   : fmt::format("no epilogue at all after its {} hooks", hooks);
    }
    for (std::size_t at = 0; at < epilogues.size(); ++at) {
      const DrivenEngine::Epilogue& epilogue = epilogues[at];
      const bool is_early = epilogue.hooks_before < hooks;
      if (is_early) ++report_.early_epilogues;
      line += fmt::format("{}epilogue after {} of {} hooks", at == 0 ? "" : ", ",
                          epilogue.hooks_before, hooks);
      if (is_early) line += fmt::format(" (too early: with the hook of {})", epilogue.param);
    }
    if (!epilogues.empty() && !one.unreduced().empty())
      line += fmt::format("; {} came later", listed(one.unreduced()));
    say(std::move(line));
  }

  void on_step(const HookEvent& event, EngineId id) {
    DrivenEngine& owner = engine(id);
    if (owner.policy().refuses_step())
      say(fmt::format("lc {}: step() would refuse: a backward is incomplete", event.lc));
    report_missed(id, owner, event.lc, "the step");
  }

  void report_missed(EngineId id, DrivenEngine& owner, std::uint64_t lc, std::string_view before) {
    std::vector<std::string> missed = owner.take_unreduced();
    if (missed.empty()) return;
    say(fmt::format("lc {}: {} uses no reduced gradient of {}: no epilogue followed their hooks",
                    lc, before, listed(missed)));
    report_.missed.push_back({id, lc, std::move(missed)});
  }

  void say(std::string line) {
    if (report_.lines.size() < kLinesMax) report_.lines.push_back(std::move(line));
  }

  WhatIfReport& report_;
  const NameTable& names_;
  const HookCounter& counter_;
  std::map<EngineId, std::unique_ptr<DrivenEngine>> engines_;
  std::vector<OpenTask> tasks_;
  std::uint64_t hooks_before_ = 0;
};

// Reads the file and hands over every event with its engine.
template <class Sink>
Result<std::uint64_t> read_events(const std::string& path, NameTable& names, Sink sink) {
  auto reader = TraceReader::open(path, names);
  if (!reader) return tl::unexpected(reader.error());
  EngineFinder finder(names);
  std::uint64_t last = 0;
  for (;;) {
    const auto record = reader->next();
    if (!record || *record == nullptr)
      return last;  // the levels report what is wrong with the file
    if (const auto* param = std::get_if<ParamRecord>(&(*record)->body))
      finder.declare_param(param->name);
    const HookEvent* event = (*record)->event();
    if (event == nullptr) continue;
    last = event->lc;
    sink(*event, finder.find(*event));
  }
}

void add_verdict(WhatIfReport& report) {
  std::string verdict =
      fmt::format("{} hooks in {} backwards: {} epilogues, {} of them too early", report.hooks,
                  report.backwards, report.epilogues, report.early_epilogues);
  verdict += report.missed.empty()
                 ? "; every gradient would have been reduced before it was used"
                 : fmt::format("; gradients would have been missed {} time{}", report.missed.size(),
                               report.missed.size() == 1 ? "" : "s");
  report.lines.insert(report.lines.begin(), std::move(verdict));
}

}  // namespace

Result<WhatIfReport> what_if(const std::string& path, const std::string& policy, PolicyMode mode) {
  if (const auto made = make_policy(policy, mode); !made) return tl::unexpected(made.error());
  WhatIfReport report{.path = path, .policy = policy_id(policy), .mode = mode};
  NameTable names;
  HookCounter counter;
  const auto counted = read_events(path, names, [&](const HookEvent& event, EngineId engine) {
    counter.on_event(event, engine, names.text(event.name));
  });
  if (!counted) return tl::unexpected(counted.error());
  WhatIf run(report, names, counter);
  const auto driven = read_events(
      path, names, [&](const HookEvent& event, EngineId engine) { run.on_event(event, engine); });
  if (!driven) return tl::unexpected(driven.error());
  run.finish(*driven);
  if (report.is_applicable()) add_verdict(report);
  return report;
}

}  // namespace zeroproof
