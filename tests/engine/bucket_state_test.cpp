// The two kinds of gradient buckets under any sequence of their methods, against a list of what
// came (docs/spec/zero.md 2.16): rc::state.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <rapidcheck/state.h>

#include <algorithm>
#include <ostream>

#include "engine/zero/ipg_bucket.h"
#include "engine/zero/stage3/gradient_bucket.h"
#include "tests/engine/support/one_context.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kBucketElements = 20;
const std::vector<std::int64_t> kLengths = {24, 6, 20, 3, 1, 11};  // one is larger than the bucket

struct Held {
  std::size_t parameter = 0;
  double value = 0.0;  // of all its elements
};

// What waits, in the order in which it came.
struct Waiting {
  bool has_overlap = false;
  bool is_contiguous = true;
  std::vector<Held> held = {};

  std::int64_t elements() const {
    std::int64_t sum = 0;
    for (const Held& one : held) sum += kLengths[one.parameter];
    return sum;
  }
  bool has(std::size_t parameter) const {
    return std::ranges::find(held, parameter, &Held::parameter) != held.end();
  }
  bool fits(std::int64_t more) const { return elements() + more <= kBucketElements; }
  // A bucket that is full is flushed first; an empty one takes whatever comes.
  bool admits(std::size_t parameter) const {
    return !has(parameter) && (held.empty() || fits(kLengths[parameter]));
  }
};

ZeroConfig config_of(const Waiting& waiting, int stage) {
  ZeroConfig config{.stage = stage};
  config.reduce_bucket_size = kBucketElements;
  config.overlap_comm = waiting.has_overlap;
  config.contiguous_gradients = waiting.is_contiguous;
  return config;
}

// What either bucket says of each parameter: whether it waits, and whether it still fits.
template <class Bucket, class Parameters>
void check_room(const Bucket& bucket, const Parameters& parameters, const Waiting& expected) {
  for (std::size_t i = 0; i < kLengths.size(); ++i) {
    RC_ASSERT(bucket.holds(parameters.at(i)) == expected.has(i));
    RC_ASSERT(bucket.is_full_for(kLengths[i]) ==
              (!expected.held.empty() && !expected.fits(kLengths[i])));
  }
}

Tensor gradient(std::size_t parameter, double value) {
  const Shape sizes = {kLengths[parameter]};
  return Tensor::of(std::vector<double>(static_cast<std::size_t>(kLengths[parameter]), value),
                    sizes, DType::float32);
}

// --- stages 1 and 2: copies in a buffer, or in two of them
// ----------------------------------------

class IpgRig {
 public:
  explicit IpgRig(const Waiting& start)
      : context_(std::make_shared<VectorsModel>(kLengths), config_of(start, 2)),
        bucket_(*context_, DType::float32, kBucketElements) {
    bucket_.set_up();
  }

  IpgBucket& bucket() { return bucket_; }
  ZeroParameter& parameter(std::size_t index) { return context_->parameters.at(index); }
  std::vector<double> read(Span span) {
    return context_->kernels().read(context_->compute(), span);
  }

  void check(const Waiting& expected) {
    RC_ASSERT(bucket_.elements() == expected.elements());
    RC_ASSERT(bucket_.is_empty() == expected.held.empty());
    RC_ASSERT(bucket_.entries().size() == expected.held.size());
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < expected.held.size(); ++i) {
      const IpgBucket::Entry& entry = bucket_.entries()[i];
      const Held& held = expected.held[i];
      RC_ASSERT(entry.parameter == &parameter(held.parameter));
      RC_ASSERT(entry.begin == begin);
      begin += kLengths[held.parameter];
      const bool is_apart = !expected.is_contiguous || kLengths[held.parameter] > kBucketElements;
      RC_ASSERT((entry.oversized >= 0) == is_apart);
      RC_ASSERT(read(bucket_.values(entry)) == gradient(held.parameter, held.value).values());
    }
    check_room(bucket_, context_->parameters, expected);
  }

 private:
  OneContext context_;
  IpgBucket bucket_;
};

template <class Rig>
struct BucketCommand : rc::state::Command<Waiting, Rig> {
  std::size_t parameter = *rc::gen::inRange<std::size_t>(0, kLengths.size());
  double value = *rc::gen::inRange(-8, 8);

  void run(const Waiting& before, Rig& rig) const override {
    act(before, rig);
    rig.check(this->nextState(before));
  }
  virtual void act(const Waiting& before, Rig& rig) const = 0;
  virtual const char* name() const = 0;
  void show(std::ostream& os) const override {
    os << name() << "(v" << kLengths[parameter] << ", " << value << ")";
  }
};

struct Append : BucketCommand<IpgRig> {
  void checkPreconditions(const Waiting& before) const override {
    RC_PRE(before.admits(parameter));
  }
  void apply(Waiting& waiting) const override { waiting.held.push_back({parameter, value}); }
  void act(const Waiting&, IpgRig& rig) const override {
    const Span at = rig.bucket().append(rig.parameter(parameter), gradient(parameter, value));
    RC_ASSERT(rig.read(at) == gradient(parameter, value).values());
  }
  const char* name() const override { return "append"; }
};

struct Join : BucketCommand<IpgRig> {
  void checkPreconditions(const Waiting& before) const override { RC_PRE(before.has(parameter)); }
  void apply(Waiting& waiting) const override {
    std::ranges::find(waiting.held, parameter, &Held::parameter)->value += value;
  }
  void act(const Waiting&, IpgRig& rig) const override {
    rig.bucket().add(rig.parameter(parameter), gradient(parameter, value));
  }
  const char* name() const override { return "add"; }
};

// The short way refuses what it cannot do, and then leaves the bucket unchanged.
struct TakeCopy : BucketCommand<IpgRig> {
  bool is_taken(const Waiting& before) const {
    return before.is_contiguous && !before.has_overlap && !before.has(parameter) &&
           before.fits(kLengths[parameter]);
  }
  void apply(Waiting& waiting) const override {
    if (is_taken(waiting)) waiting.held.push_back({parameter, value});
  }
  void act(const Waiting& before, IpgRig& rig) const override {
    Tensor grad = gradient(parameter, value);
    const bool is_taken_now = rig.bucket().try_append_fast(rig.parameter(parameter), grad);
    RC_ASSERT(is_taken_now == is_taken(before));
    RC_ASSERT(grad.is_defined() == !is_taken_now);
  }
  const char* name() const override { return "take"; }
};

struct Reduce : BucketCommand<IpgRig> {
  void apply(Waiting& waiting) const override { waiting.held.clear(); }
  void act(const Waiting& before, IpgRig& rig) const override {
    rig.bucket().order_before_reduction();
    if (before.is_contiguous && before.elements() <= kBucketElements) {
      std::vector<double> all;
      for (const Held& held : before.held)
        all.insert(all.end(), static_cast<std::size_t>(kLengths[held.parameter]), held.value);
      RC_ASSERT(rig.read(rig.bucket().filled()) == all);
    }
    rig.bucket().finish_reduction();
  }
  const char* name() const override { return "reduce"; }
};

template <class Rig>
struct Clear : BucketCommand<Rig> {
  void apply(Waiting& waiting) const override { waiting.held.clear(); }
  void act(const Waiting&, Rig& rig) const override { rig.bucket().clear(); }
  const char* name() const override { return "clear"; }
};

RC_GTEST_PROP(BucketState, Of_stages_1_and_2_holds_what_came, ()) {
  const Waiting start{.has_overlap = *rc::gen::arbitrary<bool>(),
                      .is_contiguous = *rc::gen::arbitrary<bool>()};
  IpgRig rig(start);
  rc::state::check(
      start, rig,
      rc::state::gen::execOneOfWithArgs<Append, Join, TakeCopy, Reduce, Clear<IpgRig>>());
}

// --- stage 3: a list of parameters, whose gradients stay in .grad
// ---------------------------------

class ListRig {
 public:
  explicit ListRig(const Waiting& start)
      : context_(std::make_shared<VectorsModel>(kLengths), config_of(start, 3)),
        bucket_(*context_, DType::float32) {
    for (ZeroParameter& whole : context_->parameters) partitioned_.emplace_back(*context_, whole);
  }

  GradientBucket& bucket() { return bucket_; }
  ZeroParameter& parameter(std::size_t index) { return context_->parameters.at(index); }
  PartitionedParameter& partitioned(std::size_t index) { return partitioned_.at(index); }

  void check(const Waiting& expected) {
    RC_ASSERT(bucket_.elements() == expected.elements());
    RC_ASSERT(bucket_.is_empty() == expected.held.empty());
    ParameterList list;
    for (const Held& held : expected.held) list.push_back(&partitioned(held.parameter));
    RC_ASSERT(bucket_.parameters() == list);
    check_room(bucket_, context_->parameters, expected);
  }

 private:
  OneContext context_;
  GradientBucket bucket_;
  std::deque<PartitionedParameter> partitioned_;
};

struct Add : BucketCommand<ListRig> {
  void checkPreconditions(const Waiting& before) const override {
    RC_PRE(before.admits(parameter));
  }
  void apply(Waiting& waiting) const override { waiting.held.push_back({parameter}); }
  void act(const Waiting&, ListRig& rig) const override {
    rig.bucket().add(rig.parameter(parameter), rig.partitioned(parameter));
  }
  const char* name() const override { return "add"; }
};

struct Take : BucketCommand<ListRig> {
  bool is_taken(const Waiting& before) const {
    return !before.has(parameter) && before.fits(kLengths[parameter]);
  }
  void apply(Waiting& waiting) const override {
    if (is_taken(waiting)) waiting.held.push_back({parameter});
  }
  void act(const Waiting& before, ListRig& rig) const override {
    RC_ASSERT(rig.bucket().try_append_fast(rig.parameter(parameter), rig.partitioned(parameter)) ==
              is_taken(before));
  }
  const char* name() const override { return "take"; }
};

// By id, whatever came first: ranks have to agree (E01).
struct TakeAll : BucketCommand<ListRig> {
  void apply(Waiting& waiting) const override { waiting.held.clear(); }
  void act(const Waiting& before, ListRig& rig) const override {
    ParameterList expected;
    for (std::size_t i = 0; i < kLengths.size(); ++i)
      if (before.has(i)) expected.push_back(&rig.partitioned(i));
    RC_ASSERT(rig.bucket().take_all() == expected);
  }
  const char* name() const override { return "take_all"; }
};

RC_GTEST_PROP(BucketState, Of_stage_3_lists_what_came, ()) {
  const Waiting start;
  ListRig rig(start);
  rc::state::check(start, rig,
                   rc::state::gen::execOneOfWithArgs<Add, Take, TakeAll, Clear<ListRig>>());
}

}  // namespace
}  // namespace zeroproof
