#include "props/reference/walker.h"

#include <algorithm>
#include <utility>

#include "props/reference/collective_log.h"
#include "props/reference/counters.h"
#include "props/reference/gradients_due.h"
#include "props/reference/methods.h"
#include "props/reference/record_check.h"
#include "props/reference/residency.h"
#include "props/reference/scaler.h"
#include "props/reference/skipped_frames.h"
#include "props/reference/step_log.h"

namespace zeroproof::reference {
namespace {

// What the autograd and the models say, for every engine of the rank.
bool is_shared(const HookEvent& event) {
  return event.engine.is_none() && event.kind < EventKind::zparam_gather_begin;
}

}  // namespace

// One engine: its world, what is open in it, and a part for each subject.
class Walker::Engine {
 public:
  Engine(const NameTable& names, World world)
      : names_(names),
        world_(std::move(world)),
        scene_(names),
        index_(world_, names),
        around_{world_, names, index_, ledger_, scene_} {
    begin();
  }

  void on_event(const HookEvent& event) {
    const auto is_group = [&](const std::string& name) { return name == names_.text(event.group); };
    const bool is_collective =
        event.kind == EventKind::coll_issue || event.kind == EventKind::coll_complete;
    if (is_collective && std::ranges::any_of(world_.other_groups, is_group))
      return leave_collective(event);
    if (event.kind == EventKind::coll_issue) ledger_.count_collective();
    if (is_new_engine(event)) begin();
    scene_.before(event);
    for (const auto& part : parts_) part->on_event(event);
    scene_.after(event);
  }

  void finish(bool is_complete) {
    for (const auto& part : parts_) part->finish(is_complete);
  }

  const Ledger& ledger() const { return ledger_; }

 private:
  void begin() {
    parts_.clear();
    is_configured_ = has_steps_ = false;
    add<GradientsDue>();
    add<CollectiveLog>();
    add<StepLog>();
    add<Counters>();
    add<Scaler>();
    add<RecordCheck>();
    if (world_.config.stage < 3) return;
    if (world_.skips_frames)
      add<SkippedFrames>();
    else
      add<Residency>();
  }

  // An engine knows its steps from its first forward or load on, and says its configuration once.
  // One that no longer knows its steps, or says it again, is a new engine.
  bool is_new_engine(const HookEvent& event) {
    const std::string_view name = names_.text(event.name);
    const bool is_engines = name.starts_with("engine.") || name.starts_with(calls::kAddExternal);
    if (event.kind == EventKind::engine_call && is_engines && world_.is_ours()) {
      const bool had_steps = std::exchange(has_steps_, event.micro_step >= 0);
      if (had_steps && !has_steps_) return true;
      if (name == calls::kZeroGrad && scene_.is_in(calls::kLoad)) is_loading_ = true;
    }
    // A load that is not refused clears the window before it reports the steps.
    if (event.kind == EventKind::engine_return && name == calls::kLoad)
      has_steps_ = std::exchange(is_loading_, false) || has_steps_;
    const bool is_it =
        event.kind == EventKind::mark && name.starts_with("gradient_accumulation_steps:");
    return is_it && std::exchange(is_configured_, true);
  }

  template <class Subject>
  void add() {
    parts_.push_back(std::make_unique<Subject>(around_));
  }

  void leave_collective(const HookEvent& event) {
    if (event.kind != EventKind::coll_issue) return;
    ledger_.count_collective();
    ledger_.leave_collective(Freedom::unknown_group);
  }

  const NameTable& names_;
  const World world_;
  Scene scene_;
  NameIndex index_;
  Ledger ledger_;
  Surroundings around_;
  bool is_configured_ = false;
  bool has_steps_ = false;
  bool is_loading_ = false;  // the open load is not refused
  std::vector<std::unique_ptr<Part>> parts_;
};

Walker::Walker(const NameTable& names, std::vector<World> worlds) {
  for (World& world : worlds) engines_.push_back(std::make_unique<Engine>(names, std::move(world)));
}

Walker::~Walker() = default;

void Walker::on_event(const HookEvent& event) {
  if (is_shared(event)) {
    for (const auto& engine : engines_) engine->on_event(event);
    return;
  }
  const auto index = static_cast<std::size_t>(std::max(event.engine.value, 0));
  if (index < engines_.size()) engines_[index]->on_event(event);
}

void Walker::finish(bool is_complete) {
  for (const auto& engine : engines_) engine->finish(is_complete);
}

std::vector<Finding> Walker::findings() const {
  std::vector<Finding> all;
  for (const auto& engine : engines_) {
    const std::vector<Finding>& own = engine->ledger().findings();
    all.insert(all.end(), own.begin(), own.end());
  }
  std::ranges::stable_sort(all, {}, &Finding::lc);
  return all;
}

Coverage Walker::coverage() const {
  Coverage all;
  for (const auto& engine : engines_) all.add(engine->ledger().coverage());
  return all;
}

}  // namespace zeroproof::reference
