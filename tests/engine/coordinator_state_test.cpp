// The coordinator of stage 3 under any sequence of steps, fetches and releases of modules' calls,
// against a plain account of which parameter is where (docs/spec/zero.md 3.3 to 3.6): rc::state.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <rapidcheck/state.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "engine/zero/stage3/parameter_coordinator.h"
#include "tests/engine/support/one_context.h"

namespace zeroproof {
namespace {

constexpr int kParameters = 5;
constexpr std::array<std::int64_t, kParameters> kElements = {3, 24, 6, 18, 3};
constexpr int kPersistent = 4;
const std::array<std::vector<int>, 3> kOfModule = {{{0}, {1, 2}, {3, 4}}};  // the root, l1, l2
constexpr std::int64_t kNever = -1;

struct Call {
  int module = 0;
  std::int64_t invocation = 0;
  bool is_forward = true;
};

struct Place {
  enum { apart, travelling, whole } where = apart;
  int gather = 0;               // with which it travels
  std::int64_t taken = kNever;  // the last step whose use of it is provided for
};

struct Use {
  int parameter = 0;
  std::int64_t step = 0;
};

// Where every parameter is, and what the trace knows.
struct Flow {
  std::int64_t bucket = 0;
  std::int64_t live_max = 0;
  std::array<Place, kParameters> places = {};
  std::vector<Call> open = {};
  std::int64_t next_invocation = 0;
  int next_gather = 1;

  TraceMode mode = TraceMode::invalid;
  std::int64_t step = 0;
  std::vector<int> modules = {};
  std::vector<Use> uses = {};
  std::size_t next_use = 0;

  bool is_used(int parameter) const {
    return std::ranges::any_of(
        open, [&](const Call& call) { return std::ranges::count(of(call), parameter) > 0; });
  }
  static const std::vector<int>& of(const Call& call) {
    return kOfModule[static_cast<std::size_t>(call.module)];
  }
  Place& at(int parameter) { return places[static_cast<std::size_t>(parameter)]; }

  std::int64_t live() const {
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < places.size(); ++i)
      elements += places[i].where == Place::apart ? 0 : kElements[i];
    return elements;
  }

  void start_gather(const std::vector<int>& parameters) {
    for (const int one : parameters)
      if (at(one).where == Place::apart) at(one) = {Place::travelling, next_gather, at(one).taken};
    ++next_gather;
  }
  // All that travel with it arrive.
  void wait(int parameter) {
    if (at(parameter).where != Place::travelling) return;
    const int gather = at(parameter).gather;
    for (Place& place : places)
      if (place.where == Place::travelling && place.gather == gather) place.where = Place::whole;
  }
  void wait_all() {
    for (int i = 0; i < kParameters; ++i) wait(i);
  }
  void give_back(int parameter) {
    if (at(parameter).where == Place::whole && !is_used(parameter))
      at(parameter).where = Place::apart;
  }
  void give_back_all() {
    wait_all();
    for (int i = 0; i < kParameters; ++i)
      if (i != kPersistent) give_back(i);
  }

  // The root's forward begins.
  void begin_step() {
    if (mode == TraceMode::record)
      for (std::size_t at_step = 0; at_step < modules.size(); ++at_step)
        for (const int one : kOfModule[static_cast<std::size_t>(modules[at_step])])
          uses.push_back({one, static_cast<std::int64_t>(at_step)});
    mode = mode == TraceMode::invalid ? TraceMode::record : TraceMode::complete;
    for (Place& place : places) place.taken = kNever;
    next_use = 0;
    step = 0;
  }
  void follow(int module) {
    const bool is_expected =
        mode != TraceMode::complete ||
        (step < std::ssize(modules) && modules[static_cast<std::size_t>(step)] == module);
    if (!is_expected) forget_trace();
    if (mode == TraceMode::record) modules.push_back(module);
  }
  void forget_trace() {
    mode = TraceMode::invalid;
    modules.clear();
    uses.clear();
    next_use = 0;
    std::vector<int> travelling;
    for (int i = 0; i < kParameters; ++i) {
      at(i).taken = kNever;
      if (at(i).where == Place::travelling) travelling.push_back(i);
    }
    wait_all();
    for (const int one : travelling) give_back(one);
  }
  void fetch(const Call& call) {
    follow(call.module);
    start_gather(of(call));
    open.push_back(call);
    for (const int one : of(call)) wait(one);
    if (mode == TraceMode::complete) {
      for (; next_use < uses.size() && uses[next_use].step <= step; ++next_use)
        take(uses[next_use]);
      gather_ahead();
    }
    ++step;
    ++next_invocation;
  }
  void take(const Use& use) {
    at(use.parameter).taken = std::max(at(use.parameter).taken, use.step);
  }
  // Until the bucket or the room for live parameters is full.
  void gather_ahead() {
    const std::int64_t room = std::min(live_max - live(), bucket);
    std::vector<int> ahead;
    std::int64_t elements = 0;
    for (; next_use < uses.size() && elements < room && bucket > 0; ++next_use) {
      const int one = uses[next_use].parameter;
      take(uses[next_use]);
      if (at(one).where != Place::apart || std::ranges::count(ahead, one) > 0) continue;
      ahead.push_back(one);
      elements += kElements[static_cast<std::size_t>(one)];
    }
    if (!ahead.empty()) start_gather(ahead);
  }
  void close(std::size_t index) {
    const Call call = open[index];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
    for (const int one : of(call)) {
      const bool is_needed_soon = mode == TraceMode::complete && at(one).taken > step;
      if (one != kPersistent && !is_needed_soon) give_back(one);
    }
  }
};

class CoordinatorRig {
 public:
  explicit CoordinatorRig(const Flow& start)
      : context_(std::make_shared<MlpModel>(), config_of(start)),
        gatherer_(*context_),
        modules_(context_->module, gatherer_, context_->events),
        coordinator_(*context_, gatherer_) {
    gatherer_.of(ParamId{kPersistent}).set_persistent(true);
  }

  ParameterCoordinator& coordinator() { return coordinator_; }
  ModuleCall call(const Call& given) {
    return {.module = &modules_.all().at(static_cast<std::size_t>(given.module)),
            .invocation = given.invocation};
  }
  void fetch(const Call& given) {
    coordinator_.visit(*call(given).module);
    coordinator_.fetch(call(given), given.is_forward);
  }

  void check(const Flow& expected) {
    for (int i = 0; i < kParameters; ++i) {
      const PartitionedParameter& it = gatherer_.of(ParamId{i});
      const Place& place = expected.places[static_cast<std::size_t>(i)];
      RC_ASSERT(it.elements() == kElements[static_cast<std::size_t>(i)]);
      RC_ASSERT(it.is_partitioned() == (place.where == Place::apart));
      RC_ASSERT(it.is_available() == (place.where == Place::whole));
      RC_ASSERT(gatherer_.is_inflight(it) == (place.where == Place::travelling));
      RC_ASSERT(it.is_used() == expected.is_used(i));
    }
    const FetchTrace& trace = coordinator_.trace();
    RC_ASSERT(trace.mode() == expected.mode);
    RC_ASSERT(trace.step() == expected.step);
    RC_ASSERT(trace.modules().size() == expected.modules.size());
    RC_ASSERT(trace.is_queue_empty() == (expected.next_use == expected.uses.size()));
    const auto is_backward = [](const Call& one) { return !one.is_forward; };
    RC_ASSERT(coordinator_.has_active_backward() ==
              std::ranges::any_of(expected.open, is_backward));
  }

 private:
  static ZeroConfig config_of(const Flow& start) {
    ZeroConfig config{.stage = 3};
    config.stage3_prefetch_bucket_size = start.bucket;
    config.stage3_max_live_parameters = start.live_max;
    config.stage3_max_reuse_distance = 0;
    return config;
  }

  OneContext context_;
  ParameterGatherer gatherer_;
  Zero3Modules modules_;
  ParameterCoordinator coordinator_;
};

struct FlowCommand : rc::state::Command<Flow, CoordinatorRig> {
  void run(const Flow& before, CoordinatorRig& rig) const override {
    act(before, rig);
    rig.check(nextState(before));
  }
  virtual void act(const Flow& before, CoordinatorRig& rig) const = 0;
};

struct BeginStep : FlowCommand {
  void apply(Flow& flow) const override { flow.begin_step(); }
  void act(const Flow&, CoordinatorRig& rig) const override { rig.coordinator().reset_step(); }
  void show(std::ostream& os) const override { os << "reset_step"; }
};

// Mostly what the recorded order has next, so that it is followed for a while.
struct Fetch : FlowCommand {
  int drawn = *rc::gen::inRange(0, 3);
  bool is_forward = *rc::gen::arbitrary<bool>();
  bool follows = *rc::gen::weightedElement<bool>({{6, true}, {1, false}});
  Call call(const Flow& flow) const {
    const auto at = static_cast<std::size_t>(flow.step);
    const bool has_next = flow.mode == TraceMode::complete && at < flow.modules.size();
    return {.module = follows && has_next ? flow.modules[at] : drawn,
            .invocation = flow.next_invocation,
            .is_forward = is_forward};
  }
  void apply(Flow& flow) const override { flow.fetch(call(flow)); }
  void act(const Flow& before, CoordinatorRig& rig) const override { rig.fetch(call(before)); }
  void show(std::ostream& os) const override {
    os << "fetch(" << drawn << (follows ? " or next" : "") << (is_forward ? ")" : ", backward)");
  }
};

struct CallCommand : FlowCommand {
  std::size_t drawn = *rc::gen::inRange<std::size_t>(0, 100);
  void checkPreconditions(const Flow& flow) const override { RC_PRE(!flow.open.empty()); }
  std::size_t index(const Flow& flow) const { return drawn % flow.open.size(); }
};

struct ReleaseStep : CallCommand {
  void apply(Flow& flow) const override { flow.close(index(flow)); }
  void act(const Flow& before, CoordinatorRig& rig) const override {
    const Call& call = before.open[index(before)];
    rig.coordinator().release(rig.call(call), call.is_forward);
  }
  void show(std::ostream& os) const override { os << "release(" << drawn << ")"; }
};

// A forward that throws.
struct Abandon : CallCommand {
  void checkPreconditions(const Flow& flow) const override {
    RC_PRE(!flow.open.empty());
    RC_PRE(flow.open[index(flow)].is_forward);
  }
  void apply(Flow& flow) const override {
    const Call call = flow.open[index(flow)];
    flow.open.erase(flow.open.begin() + static_cast<std::ptrdiff_t>(index(flow)));
    for (const int one : Flow::of(call)) {
      flow.wait(one);
      if (one != kPersistent) flow.give_back(one);
    }
  }
  void act(const Flow& before, CoordinatorRig& rig) const override {
    rig.coordinator().abandon_forward(rig.call(before.open[index(before)]));
  }
  void show(std::ostream& os) const override { os << "abandon_forward(" << drawn << ")"; }
};

struct EndBackward : FlowCommand {
  void apply(Flow& flow) const override {
    std::erase_if(flow.open, [](const Call& call) { return !call.is_forward; });
    flow.give_back_all();
  }
  void act(const Flow&, CoordinatorRig& rig) const override {
    rig.coordinator().release_backward_leftovers();
  }
  void show(std::ostream& os) const override { os << "release_backward_leftovers"; }
};

struct EndForward : FlowCommand {
  void apply(Flow& flow) const override { flow.give_back_all(); }
  void act(const Flow&, CoordinatorRig& rig) const override {
    rig.coordinator().release_all_unused();
  }
  void show(std::ostream& os) const override { os << "release_all_unused"; }
};

// The update releases parameters in use, too.
struct ReleaseAll : FlowCommand {
  void apply(Flow& flow) const override {
    flow.open.clear();
    for (Place& place : flow.places) place.where = Place::apart;
  }
  void act(const Flow&, CoordinatorRig& rig) const override {
    rig.coordinator().release_and_reset_all();
  }
  void show(std::ostream& os) const override { os << "release_and_reset_all"; }
};

RC_GTEST_PROP(CoordinatorState, Knows_where_every_parameter_is, ()) {
  const Flow start{.bucket = *rc::gen::element<std::int64_t>(0, 7, 30, 100),
                   .live_max = *rc::gen::element<std::int64_t>(20, 40, 1'000)};
  CoordinatorRig rig(start);
  rig.check(start);
  rc::state::check(
      start, rig,
      rc::state::gen::execOneOfWithArgs<BeginStep, Fetch, Fetch, Fetch, ReleaseStep, ReleaseStep,
                                        Abandon, EndBackward, EndForward, ReleaseAll>());
}

}  // namespace
}  // namespace zeroproof
