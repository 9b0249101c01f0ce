// Every detector of the simulated world with a bug that it has to report, in some order of the
// ranks or in every one, and with the same program repaired, which has no finding.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/check.h"
#include "props/stream_properties.h"
#include "sim/schedulers/random.h"
#include "sim/world/sim_world.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof {
namespace {

constexpr DType kFloat = DType::float32;

// The seam of one rank, in the words of the programs below.
struct Rank {
  Runtime& runtime;
  bool is_repaired;
  Stream& compute = runtime.stream(StreamRole::compute);
  Stream& reduction = runtime.stream(StreamRole::reduction);
  Stream& gathers = runtime.stream(StreamRole::all_gather);
  Stream& offload = runtime.stream(StreamRole::offload);
  Kernels& kernels = runtime.kernels();
  ProcessGroup& data = runtime.group(GroupKind::data);

  bool is_first() const { return runtime.rank() == 0; }
  Tensor buffer(std::int64_t elements = 4) const {
    return runtime.memory().allocate(elements, kFloat);
  }
  Tensor filled(double value, std::int64_t elements = 4) const {
    Tensor tensor = buffer(elements);
    kernels.fill(compute, Span::of(tensor), value);
    return tensor;
  }
};

// llm.c: the optimizer writes this rank's shard on one stream, another one gathers it.
void gather_behind_optimizer(const Rank& rank) {
  const Tensor weights = rank.filled(0.0, 4);
  const Span own = Span::of(weights, 2 * rank.runtime.rank(), 2);
  const Tensor gradient = rank.filled(1.0, 2);
  rank.gathers.wait(rank.compute);
  rank.kernels.sgd(rank.compute, {.parameter = own, .grad = Span::of(gradient)});
  if (rank.is_repaired) rank.gathers.wait(rank.compute);
  rank.data.wait(rank.data.all_gather(rank.gathers, Span::of(weights), own), rank.compute);
  rank.kernels.read(rank.compute, Span::of(weights));
}

// G05, upstream #8061: two streams pack a bucket, the reduction waits for the current one.
void reduce_of_two_producers(const Rank& rank) {
  const Tensor bucket = rank.buffer();
  Stream& second = rank.runtime.user_stream(1);
  rank.kernels.fill(second, Span::of(bucket, 2, 2), 2.0);
  rank.kernels.fill(rank.compute, Span::of(bucket, 0, 2), 1.0);
  rank.reduction.wait(rank.compute);
  if (rank.is_repaired) rank.reduction.wait(second);
  rank.data.wait(rank.data.all_reduce(rank.reduction, Span::of(bucket), ReduceOp::sum),
                 rank.compute);
  rank.reduction.synchronize();
}

// H19: of two producers the current one alone waits before the bucket is filled again.
void reuse_by_two_producers(const Rank& rank) {
  const Tensor bucket = rank.filled(0.0);
  Stream& second = rank.runtime.user_stream(1);
  rank.reduction.wait(rank.compute);
  rank.data.all_reduce(rank.reduction, Span::of(bucket), ReduceOp::sum);
  const StreamEvent reduced = rank.reduction.record();
  rank.compute.wait(reduced);
  if (rank.is_repaired) second.wait(reduced);
  rank.kernels.fill(second, Span::of(bucket, 2, 2), 1.0);
  second.synchronize();
  rank.reduction.synchronize();
}

// G02: clear() sets the index of the buffers back, so that the flip ends on the one in use.
void ping_pong(const Rank& rank) {
  const std::vector<Tensor> buffers{rank.filled(0.0), rank.filled(0.0)};
  std::vector<StreamEvent> reduced{rank.compute.record(), rank.compute.record()};
  std::size_t index = 0;
  for (int bucket = 0; bucket < 3; ++bucket) {
    rank.compute.wait(reduced[index]);
    rank.kernels.fill(rank.compute, Span::of(buffers[index]), 1.0);
    rank.reduction.wait(rank.compute);
    rank.data.all_reduce(rank.reduction, Span::of(buffers[index]), ReduceOp::sum);
    const std::size_t done = index;
    if (!rank.is_repaired) index = 0;
    index = 1 - index;
    reduced[rank.is_repaired ? done : 1 - done] = rank.reduction.record();
  }
  rank.reduction.synchronize();
}

// G04: the last reference goes while a queued copy still reads.
void free_before_copy(const Rank& rank) {
  const Tensor target = rank.filled(0.0);
  Tensor source = rank.filled(2.0);
  rank.offload.wait(rank.compute);
  rank.kernels.copy(rank.offload, Span::of(target), Span::of(source));
  if (rank.is_repaired) rank.offload.record_use(source);
  source = Tensor();
  rank.offload.synchronize();
}

// The same with the model's own memory: a released parameter.
void release_before_reduction(const Rank& rank) {
  Tensor parameter = Tensor::full({4}, 1.0, kFloat);
  const Work work = rank.data.all_reduce(rank.reduction, Span::of(parameter), ReduceOp::sum);
  if (rank.is_repaired) {
    rank.data.wait(work, rank.compute);
    rank.kernels.read(rank.compute, Span::of(parameter));
  }
  parameter = Tensor();
  rank.reduction.synchronize();
}

void read_without_wait(const Rank& rank) {
  const Tensor data = rank.filled(1.0);
  rank.reduction.wait(rank.compute);
  const Work work = rank.data.all_reduce(rank.reduction, Span::of(data), ReduceOp::sum);
  if (rank.is_repaired) rank.data.wait(work, rank.compute);
  rank.kernels.read(rank.compute, Span::of(data));
  rank.reduction.synchronize();
}

void collectives_of_different_sizes(const Rank& rank) {
  const Tensor data = rank.filled(1.0, rank.is_first() || rank.is_repaired ? 4 : 6);
  rank.data.all_reduce(rank.compute, Span::of(data), ReduceOp::sum);
}

void collectives_in_different_orders(const Rank& rank) {
  const Tensor data = rank.filled(1.0);
  const bool sums_first = rank.is_first() || rank.is_repaired;
  for (const bool is_sum : {sums_first, !sums_first})
    rank.data.all_reduce(rank.compute, Span::of(data), is_sum ? ReduceOp::sum : ReduceOp::max);
}

// Equal in everything but what they are about.
void parameters_in_different_orders(const Rank& rank) {
  const Tensor data = rank.filled(1.0);
  const int first = rank.is_first() || rank.is_repaired ? 3 : 5;
  for (const int parameter : {first, 8 - first}) {
    const std::vector<ContentPart> content{{parameter, 0}};
    rank.data.announce(content);
    rank.data.all_reduce(rank.compute, Span::of(data), ReduceOp::sum);
  }
}

void offsets_that_differ(const Rank& rank) {
  const Tensor data = rank.filled(1.0);
  const std::vector<ContentPart> content{{3, rank.is_first() || rank.is_repaired ? 0 : 4}};
  rank.data.announce(content);
  rank.data.all_reduce(rank.compute, Span::of(data), ReduceOp::sum);
}

void groups_in_opposite_orders(const Rank& rank) {
  const bool is_data_first = rank.is_first() || rank.is_repaired;
  rank.runtime.group(is_data_first ? GroupKind::data : GroupKind::sequence).barrier(rank.compute);
  rank.runtime.group(is_data_first ? GroupKind::sequence : GroupKind::data).barrier(rank.compute);
}

// The same on two streams, where only the host's waits make it one.
void groups_in_opposite_orders_beside(const Rank& rank) {
  const bool is_data_first = rank.is_first() || rank.is_repaired;
  for (const bool is_data : {is_data_first, !is_data_first}) {
    rank.runtime.group(is_data ? GroupKind::data : GroupKind::sequence).barrier(rank.reduction);
    rank.reduction.synchronize();
  }
}

void collective_that_one_skips(const Rank& rank) {
  if (rank.is_first() || rank.is_repaired) rank.data.barrier(rank.compute);
}

// One window's worth is kept forever.
void memory_that_grows(const Rank& rank) {
  TensorList kept;
  for (int window = 0; window < 16; ++window) {
    if (rank.is_repaired) kept.clear();
    kept.push_back(rank.filled(1.0, 16));
  }
}

// Polls a collective that comes only when somebody else has been let go on.
void loop_without_end(const Rank& rank) {
  const Work work = rank.data.barrier(rank.reduction);
  while (!rank.is_repaired || !rank.data.is_completed(work)) rank.reduction.record();
}

struct Bug {
  std::string name;
  void (*program)(const Rank& rank);
  std::string finding;            // of the world ("deadlock"), or a property ("P46")
  std::string text;               // a part of what it says
  bool is_in_every_order = true;  // found whatever the order was
  std::int64_t capacity_bytes = INT64_MAX;
};

std::vector<Bug> bugs() {
  return {
      {"llm.c: no edge between optimizer and all-gather", gather_behind_optimizer, "P46", "write"},
      {"G05, #8061: several producer streams", reduce_of_two_producers, "P46", "stream 4"},
      {"H19: reuse by another producer", reuse_by_two_producers, "P47", "write"},
      {"G02: ping-pong reuse", ping_pong, "P47", "write"},
      {"G04: use after free", free_before_copy, "P48", "was freed on"},
      {"use after free, seen by the work itself", free_before_copy, "use_after_free",
       "r0.offload found its memory freed", false},
      {"use after release", release_before_reduction, "P48", "was freed on"},
      {"use after release, seen by the work", release_before_reduction, "use_after_free",
       "collective 0: memory of rank", true},
      {"missing wait", read_without_wait, "P46", "read on stream 0"},
      {"collectives of different sizes", collectives_of_different_sizes, "collective_mismatch",
       "of 6 float32"},
      {"collectives in different orders", collectives_in_different_orders, "collective_mismatch",
       "all_reduce(max)"},
      {"parameters in different orders", parameters_in_different_orders, "collective_mismatch",
       "(parameter 5 from element 0)"},
      {"parts at different offsets", offsets_that_differ, "collective_mismatch",
       "(parameter 3 from element 4)"},
      {"groups in opposite orders", groups_in_opposite_orders, "deadlock",
       "; cycle: rank 0 -> rank 1 -> rank 0"},
      {"groups in opposite orders on a side stream", groups_in_opposite_orders_beside, "deadlock",
       "; cycle: rank 0 -> rank 1 -> rank 0"},
      {"a collective that one rank skips", collective_that_one_skips, "deadlock",
       "rank 0 waits for data group [0, 1], collective 0 (barrier), where rank 1 did not come; "
       "rank 1 has ended"},
      {"unbounded memory", memory_that_grows, "out_of_memory", "512 of 512 in use", true, 512},
      {"no progress", loop_without_end, "no_progress", "within 5000 steps"},
  };
}

// What one order shows: finding or property, and its text.
struct Shown {
  std::string name;
  std::string text;
};

std::vector<Shown> run(const Bug& bug, bool is_repaired, Chooser& chooser) {
  std::vector<StreamOrderCheck> checks(2);
  SimWorldOptions options{.world_size = 2};
  options.degrees.sequence = 2;
  options.capacity_bytes = bug.capacity_bytes;
  options.observers = {{.accesses = &checks[0]}, {.accesses = &checks[1]}};
  options.preemption = Preemption::at_every_call;
  options.steps_max = 5000;
  std::vector<Shown> shown;
  {
    SimWorld world(options, chooser);
    const auto errors = world.try_run([&](Runtime& runtime) {
      bug.program({runtime, is_repaired});
    });
    for (const sim::Finding& finding : world.findings())
      shown.push_back({std::string(finding_name(finding.kind)), finding.text});
  }
  for (StreamOrderCheck& check : checks) {
    check.finish();
    for (const Verdict& verdict : check.verdicts())
      for (const Finding& finding : verdict.findings)
        shown.push_back({std::string(verdict.property->number), finding.text});
  }
  return shown;
}

constexpr int kOrders = 40;

int orders_that_show(const Bug& bug) {
  RandomScheduler scheduler(11);
  int found = 0;
  for (int order = 0; order < kOrders; ++order) {
    scheduler.new_execution();
    const std::vector<Shown> shown = run(bug, false, scheduler);
    scheduler.end_execution({});
    found += std::ranges::any_of(shown, [&](const Shown& one) {
      return one.name == bug.finding && one.text.find(bug.text) != std::string::npos;
    });
  }
  return found;
}

TEST(Detectors, Report_the_planted_bug) {
  for (const Bug& bug : bugs()) {
    const int found = orders_that_show(bug);
    EXPECT_GT(found, 0) << bug.name;
    if (bug.is_in_every_order) {
      EXPECT_EQ(found, kOrders) << bug.name;
    }
    if (found > 0) continue;
    FirstChooser chooser;
    for (const Shown& one : run(bug, false, chooser)) ADD_FAILURE() << one.name << ": " << one.text;
  }
}

TEST(Detectors, Are_silent_about_the_repaired_program) {
  for (const Bug& bug : bugs()) {
    RandomScheduler scheduler(12);
    for (int order = 0; order < kOrders; ++order) {
      scheduler.new_execution();
      for (const Shown& one : run(bug, true, scheduler))
        ADD_FAILURE() << bug.name << ": " << one.name << ": " << one.text;
      scheduler.end_execution({});
    }
  }
}

// A lost wake-up needs a signal that is sent before somebody listens, and is over then. Events of
// the seam are no signals: they are recorded before anybody can wait, and stay reached.
TEST(Detectors, Have_no_lost_wake_up_to_find) {
  FirstChooser chooser;
  SimWorld world({}, chooser);
  world.run([](Runtime& runtime) {
    Stream& compute = runtime.stream(StreamRole::compute);
    Stream& reduction = runtime.stream(StreamRole::reduction);
    EXPECT_THROW(compute.wait(StreamEvent{0}), CheckFailed);
    const StreamEvent early = reduction.record();
    for (int listener = 0; listener < 2; ++listener) {
      reduction.synchronize(early);
      compute.wait(early);
      EXPECT_TRUE(reduction.query(early));
    }
  });
  EXPECT_TRUE(world.findings().empty());
}

}  // namespace
}  // namespace zeroproof
