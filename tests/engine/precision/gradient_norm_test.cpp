// Decisions about a step, from shards that several ranks own.
#include "engine/precision/gradient_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/internal/engine/hooks/backward_tracker.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {
namespace {

using ::testing::Each;
using Values = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class NoModule final : public nn::Module {
 protected:
  TensorList forward(Autograd&, const TensorList& inputs) const override { return inputs; }
};

using Decide = std::function<double(ZeroContext&, const std::vector<Span>&)>;

double norm_of(ZeroContext& context, const std::vector<Span>& shards) {
  return gradient_norm(context, {.spans = shards});
}

double overflow_of(ZeroContext& context, const std::vector<Span>& shards) {
  return has_overflow(context, {.spans = shards}) ? 1.0 : 0.0;
}

// What every rank decides, whose shard is in two spans.
Values on_each_rank(const HostWorldOptions& options, const std::vector<Values>& shards,
                    const Decide& decide) {
  HostWorld world(options);
  Values decisions(shards.size());
  world.run([&](Runtime& runtime) {
    const auto rank = static_cast<std::size_t>(runtime.rank());
    Autograd autograd(runtime.ops());
    NoModule module;
    const ZeroConfig config;
    const BackwardTracker tracker;
    const Events events(runtime, EngineId{0});
    ZeroContext context{autograd,
                        module,
                        config,
                        runtime,
                        {},
                        tracker,
                        events,
                        {},
                        {},
                        Communicator(runtime.group(GroupKind::data), events),
                        Communicator(runtime.group(GroupKind::tensor), events)};
    const auto elements = static_cast<std::int64_t>(shards[rank].size());
    const Tensor shard = runtime.memory().allocate(elements, DType::float16);
    runtime.kernels().write(context.compute(), Span::of(shard), shards[rank]);
    const std::int64_t half = elements / 2;
    decisions[rank] =
        decide(context, {Span::of(shard, 0, half), Span::of(shard, half, elements - half)});
  });
  return decisions;
}

RC_GTEST_PROP(GradientNorm, Is_that_of_all_shards_together_on_every_rank, ()) {
  const int world = *rc::gen::element(1, 2, 3, 4);
  std::vector<Values> shards;
  double squares = 0.0;
  for (int rank = 0; rank < world; ++rank) {
    Values& shard = shards.emplace_back();
    for (int i = *rc::gen::inRange(0, 5); i-- > 0;) {
      shard.push_back(*rc::gen::inRange(-1000, 1000));
      squares += shard.back() * shard.back();
    }
  }
  for (const double norm : on_each_rank({.world_size = world}, shards, norm_of))
    RC_ASSERT(norm == std::sqrt(squares));
}

TEST(GradientNorm, Sums_over_the_tensor_parallel_ranks_too) {
  const HostWorldOptions options{.world_size = 4, .degrees = {.tensor = 2}};
  EXPECT_THAT(on_each_rank(options, {{1, 1}, {3}, {1}, {2}}, norm_of), Each(4.0));
}

// float16 holds 60000, not its square.
TEST(GradientNorm, Squares_in_double) {
  EXPECT_THAT(on_each_rank({}, {{60'000}}, norm_of), Each(60'000.0));
}

TEST(GradientNorm, Is_minus_one_when_any_rank_has_no_finite_one) {
  for (const double bad : {kInfinity, -kInfinity, std::nan("")})
    EXPECT_THAT(on_each_rank({.world_size = 2}, {{1, 2}, {1, bad}}, norm_of), Each(-1.0));
}

TEST(Overflow, Is_seen_by_all_ranks_when_one_has_it) {
  const HostWorldOptions options{.world_size = 4, .degrees = {.tensor = 2}};
  for (const double bad : {kInfinity, -kInfinity, std::nan("")})
    for (std::size_t rank = 0; rank < 4; ++rank) {
      std::vector<Values> shards(4, {1, 2, 3});
      shards[rank][rank % 3] = bad;
      EXPECT_THAT(on_each_rank(options, shards, overflow_of), Each(1.0)) << rank;
    }
}

// Stage 0 does not ask the data group, whose ranks have the same gradient.
TEST(Overflow, Of_a_whole_gradient_is_that_of_all_tensor_parallel_ranks) {
  const HostWorldOptions options{.world_size = 4, .degrees = {.tensor = 2}};
  const Decide whole_overflow = [](ZeroContext& context, const std::vector<Span>& gradients) {
    return has_overflow(context, {.spans = gradients, .is_whole = true}) ? 1.0 : 0.0;
  };
  EXPECT_THAT(on_each_rank(options, {{1}, {kInfinity}, {1}, {1}}, whole_overflow),
              ::testing::ElementsAre(1.0, 1.0, 0.0, 0.0));
}

TEST(Overflow, Is_none_of_large_finite_numbers) {
  EXPECT_THAT(on_each_rank({.world_size = 2}, {{65504, 65504}, {}}, overflow_of), Each(0.0));
}

// Stage 0 has the whole gradient on each rank, stages 1 to 3 have slices of it: the bits agree.
RC_GTEST_PROP(GradientNorm, Of_a_whole_gradient_has_the_bits_of_its_slices, ()) {
  const int world = *rc::gen::element(1, 2, 3, 4);
  Values whole;
  for (int i = *rc::gen::inRange(1, 20); i-- > 0;)
    whole.push_back(round_to(DType::float16, *rc::gen::inRange(-1000, 1000) / 37.0));
  const std::size_t slice = (whole.size() + world - 1) / world;
  std::vector<Values> shards;
  for (std::size_t i = 0; i < static_cast<std::size_t>(world); ++i) {
    const auto begin =
        whole.begin() + static_cast<std::ptrdiff_t>(std::min(i * slice, whole.size()));
    const auto left = static_cast<std::size_t>(whole.end() - begin);
    shards.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(std::min(slice, left)));
  }
  const double sliced = on_each_rank({.world_size = world}, shards, norm_of)[0];
  const Decide whole_norm = [](ZeroContext& context, const std::vector<Span>& halves) {
    const Span all{halves[0].tensor, 0, halves[0].elements + halves[1].elements};
    return gradient_norm(context, {.spans = {all}, .is_whole = true});
  };
  const std::vector<Values> replicas(static_cast<std::size_t>(world), whole);
  for (const double norm : on_each_rank({.world_size = world}, replicas, whole_norm))
    RC_ASSERT(norm == sliced);
}

TEST(Divisor, Is_the_scale_where_the_norm_is_within_the_clip) {
  EXPECT_EQ(1024.0, unscale_and_clip_divisor(1024.0, 512.0, 1.0));
  EXPECT_EQ(8.0, unscale_and_clip_divisor(8.0, 1e9, 0.0));   // no clipping
  EXPECT_EQ(8.0, unscale_and_clip_divisor(8.0, -1.0, 1.0));  // the norm was not finite
}

TEST(Divisor, Makes_the_norm_the_clip_or_a_little_less) {
  for (const double scale : {1.0, 1024.0})
    for (const double norm : {10.0, 12'345.0, 1e8}) {
      const double clipped = norm / unscale_and_clip_divisor(scale, norm, 0.5 / scale);
      EXPECT_LE(clipped, 0.5 / scale);
      EXPECT_GE(clipped, 0.5 / scale * (1.0 - 2e-6 * scale / norm));
    }
}

}  // namespace
}  // namespace zeroproof
