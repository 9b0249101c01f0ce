// The status machine of one parameter of stage 3 on one rank of three, under any sequence of its
// transitions (docs/spec/zero.md 3.1), against whole values and a slice kept apart: rc::state.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <rapidcheck/state.h>

#include <ostream>
#include <set>
#include <tuple>

#include "engine/zero/stage3/partitioned_parameter.h"
#include "tests/engine/support/one_context.h"
#include "zeroproof/engine/engine_error.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kStatusElements = 7;  // slices of 3, 3 and 1
constexpr int kStatusRanks = 3;
constexpr std::int64_t kSlice = 3;

using StatusValues = std::vector<double>;
using StatusUse = std::tuple<int, bool, int>;  // module, backward, invocation

// What the parameter has to be.
struct Status {
  int rank = 0;
  ZeroParamStatus status = ZeroParamStatus::available;
  bool is_kept = false;
  StatusValues whole = {};  // as of the last gather, or what was written since
  StatusValues slice = {};
  std::set<StatusUse> uses = {};

  std::int64_t begin() const { return kSlice * rank; }
  std::int64_t own() const { return std::min(kSlice, kStatusElements - begin()); }
  bool is_there() const { return status == ZeroParamStatus::available || is_kept; }
};

StatusValues counting(double first) {
  StatusValues values;
  for (std::int64_t i = 0; i < kStatusElements; ++i)
    values.push_back(first + static_cast<double>(i));
  return values;
}

class StatusRig {
 public:
  explicit StatusRig(const Status& start)
      : context_(std::make_shared<VectorsModel>(std::vector<std::int64_t>{kStatusElements}),
                 ZeroConfig{.stage = 3}, kStatusRanks, start.rank) {
    write(start.whole);
    parameter_ = std::make_unique<PartitionedParameter>(*context_, whole());
  }

  PartitionedParameter& parameter() { return *parameter_; }
  void write(const StatusValues& values) {
    context_->kernels().write(context_->compute(), Span::of(whole().tensor), values);
  }

  void check(const Status& expected) {
    const PartitionedParameter& it = *parameter_;
    RC_ASSERT(it.status() == expected.status);
    RC_ASSERT(it.is_kept() == expected.is_kept);
    RC_ASSERT(it.is_used() == !expected.uses.empty());
    std::set<int> modules;
    for (const StatusUse& use : expected.uses) modules.insert(std::get<0>(use));
    RC_ASSERT(it.count_using_modules() == static_cast<std::int32_t>(modules.size()));
    RC_ASSERT(it.own_begin() == expected.begin());
    RC_ASSERT(it.own_elements() == expected.own());
    RC_ASSERT(it.slice().values() == expected.slice);
    RC_ASSERT(whole().tensor.values() == (expected.is_there() ? expected.whole : StatusValues{}));
  }

 private:
  ZeroParameter& whole() { return context_->parameters.front(); }

  OneContext context_;
  std::unique_ptr<PartitionedParameter> parameter_;
};

struct StatusCommand : rc::state::Command<Status, StatusRig> {
  void run(const Status& before, StatusRig& rig) const override {
    act(before, rig.parameter(), rig);
    rig.check(nextState(before));
  }
  virtual void act(const Status& before, PartitionedParameter& parameter, StatusRig& rig) const = 0;
};

struct BeginGather : StatusCommand {
  void checkPreconditions(const Status& s) const override {
    RC_PRE(s.status == ZeroParamStatus::not_available);
  }
  void apply(Status& s) const override {
    s.status = ZeroParamStatus::inflight;
    s.is_kept = false;
  }
  void act(const Status&, PartitionedParameter& parameter, StatusRig&) const override {
    parameter.begin_gather();
  }
  void show(std::ostream& os) const override { os << "begin_gather"; }
};

struct GiveUp : StatusCommand {
  void apply(Status& s) const override {
    if (s.status == ZeroParamStatus::inflight) s.status = ZeroParamStatus::not_available;
  }
  void act(const Status&, PartitionedParameter& parameter, StatusRig&) const override {
    parameter.give_up_gather();
  }
  void show(std::ostream& os) const override { os << "give_up_gather"; }
};

struct Install : StatusCommand {
  double first = *rc::gen::inRange(-50, 50);
  void checkPreconditions(const Status& s) const override {
    RC_PRE(s.status == ZeroParamStatus::inflight);
  }
  void apply(Status& s) const override {
    s.status = ZeroParamStatus::available;
    s.whole = counting(first);
  }
  // A flat buffer may be longer than the parameter.
  void act(const Status&, PartitionedParameter& parameter, StatusRig&) const override {
    StatusValues flat = counting(first);
    flat.resize(kSlice * kStatusRanks, -1.0);
    parameter.install(Tensor::of(flat, {kSlice * kStatusRanks}, DType::float32));
  }
  void show(std::ostream& os) const override { os << "install(" << first << ")"; }
};

// In use it is refused, and the state is unchanged (parameter_freed_while_used).
struct Leave : StatusCommand {
  enum class Way { partition, partition_updated, keep };
  Way way = *rc::gen::element(Way::partition, Way::partition_updated, Way::keep);
  void checkPreconditions(const Status& s) const override {
    RC_PRE(s.status == ZeroParamStatus::available);
  }
  void apply(Status& s) const override {
    if (!s.uses.empty()) return;
    s.status = ZeroParamStatus::not_available;
    s.is_kept = way == Way::keep;
    if (way != Way::partition_updated) return;
    for (std::int64_t i = 0; i < s.own(); ++i)
      s.slice[static_cast<std::size_t>(i)] = s.whole[static_cast<std::size_t>(s.begin() + i)];
  }
  void act(const Status& before, PartitionedParameter& parameter, StatusRig&) const override {
    const auto leave = [&] {
      way == Way::keep ? parameter.cache_whole()
                       : parameter.partition(way == Way::partition_updated);
    };
    if (before.uses.empty()) return leave();
    RC_ASSERT_THROWS_AS(leave(), EngineError);
  }
  void show(std::ostream& os) const override {
    os << (way == Way::keep ? "keep" : way == Way::partition ? "partition" : "partition(updated)");
  }
};

struct Return : StatusCommand {
  bool is_dropped = *rc::gen::arbitrary<bool>();
  void checkPreconditions(const Status& s) const override { RC_PRE(s.is_kept); }
  void apply(Status& s) const override {
    s.is_kept = false;
    if (!is_dropped) s.status = ZeroParamStatus::available;
  }
  void act(const Status&, PartitionedParameter& parameter, StatusRig&) const override {
    is_dropped ? parameter.evict_cached() : parameter.restore_cached();
  }
  void show(std::ostream& os) const override { os << (is_dropped ? "drop_kept" : "reclaim"); }
};

struct ChangeUse : StatusCommand {
  enum class Kind { add, remove, clear };
  Kind kind =
      *rc::gen::weightedElement<Kind>({{3, Kind::add}, {3, Kind::remove}, {1, Kind::clear}});
  StatusUse use =
      *rc::gen::tuple(rc::gen::inRange(0, 2), rc::gen::arbitrary<bool>(), rc::gen::inRange(0, 2));
  void apply(Status& s) const override {
    if (kind == Kind::add) s.uses.insert(use);
    if (kind == Kind::remove) s.uses.erase(use);
    if (kind == Kind::clear) s.uses.clear();
  }
  void act(const Status&, PartitionedParameter& parameter, StatusRig&) const override {
    const auto [module, is_backward, invocation] = use;
    const ParameterUse it{.module = module, .is_backward = is_backward, .invocation = invocation};
    if (kind == Kind::add) parameter.add_use(it);
    if (kind == Kind::remove) parameter.remove_use(it);
    if (kind == Kind::clear) parameter.clear_uses();
  }
  void show(std::ostream& os) const override {
    os << (kind == Kind::add      ? "add_use"
           : kind == Kind::remove ? "remove_use"
                                  : "clear_uses")
       << "(" << std::get<0>(use) << std::get<1>(use) << std::get<2>(use) << ")";
  }
};

// A gather context, which has it whole, writes it.
struct Write : StatusCommand {
  double first = *rc::gen::inRange(-50, 50);
  void checkPreconditions(const Status& s) const override {
    RC_PRE(s.status == ZeroParamStatus::available);
  }
  void apply(Status& s) const override { s.whole = counting(first); }
  void act(const Status&, PartitionedParameter&, StatusRig& rig) const override {
    rig.write(counting(first));
  }
  void show(std::ostream& os) const override { os << "write(" << first << ")"; }
};

RC_GTEST_PROP(ParameterStatusState, Follows_its_transitions, ()) {
  Status start{.rank = *rc::gen::inRange(0, kStatusRanks)};
  start.whole = counting(1.0);
  start.slice.assign(kSlice, 0.0);
  for (std::int64_t i = 0; i < start.own(); ++i)
    start.slice[static_cast<std::size_t>(i)] =
        start.whole[static_cast<std::size_t>(start.begin() + i)];
  StatusRig rig(start);
  rig.check(start);
  rc::state::check(start, rig,
                   rc::state::gen::execOneOfWithArgs<BeginGather, GiveUp, Install, Leave, Return,
                                                     ChangeUse, Write>());
}

}  // namespace
}  // namespace zeroproof
