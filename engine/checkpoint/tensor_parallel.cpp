#include "engine/checkpoint/tensor_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "engine/checkpoint/axis_plan.h"

namespace zeroproof {
namespace {

std::vector<Shape> shapes_of(std::span<const FullTensor> parts) {
  std::vector<Shape> sizes;
  for (const FullTensor& part : parts) sizes.push_back(part.sizes);
  return sizes;
}

FullTensor made_of(std::span<const FullTensor> parts, const AxisPlan& plan) {
  const std::vector<Shape> sizes = shapes_of(parts);
  FullTensor made{parts.front().name, plan.sizes, {}};
  made.values.reserve(static_cast<std::size_t>(numel(plan.sizes)));
  each_piece(plan, sizes, 0, numel(plan.sizes), [&](const PartPiece& piece) {
    if (piece.part == AxisRun::kZeros) {
      made.values.resize(made.values.size() + static_cast<std::size_t>(piece.elements), 0.0);
      return true;
    }
    const auto begin = parts[static_cast<std::size_t>(piece.part)].values.begin() + piece.begin;
    made.values.insert(made.values.end(), begin, begin + piece.elements);
    return true;
  });
  return made;
}

Result<FullTensor> joined(const std::vector<FullTensor>& parts, const Result<AxisPlan>& plan) {
  if (!plan) return tl::unexpected(plan.error());
  return made_of(parts, *plan);
}

Result<FullTensor> take_expert_block(FullTensor whole, const PartitionRule& rule,
                                     ParallelRank expert) {
  if (rule.experts == 0 || expert.size == 1) return whole;
  const std::int64_t rows = whole.sizes.empty() ? 0 : whole.sizes.front();
  if (rows != rule.experts || rows % expert.size != 0)
    return fail(ErrorCode::usage,
                fmt::format("{} experts are recorded and {} are there, for an expert-parallel size "
                            "of {}; load with a size that divides them",
                            rule.experts, rows, expert.size));
  const PartitionRule by_rows{.kind = PartitionKind::sliced};
  const auto cut = plan_cut(whole.sizes, by_rows, expert, {});
  if (!cut) return tl::unexpected(cut.error());
  return made_of(std::span(&whole, 1), cut->plan);
}

}  // namespace

std::string problem_of(const PartitionRule& rule) {
  // What many of these numbers add up to, and one of them times a number of ranks, is an int64.
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  constexpr std::size_t kMostWidths = std::size_t{1} << 16;
  const auto is_wrong = [](std::int64_t number) { return number < 0 || number > kLargest; };
  if (is_wrong(rule.axis) || is_wrong(rule.vocabulary_rows) || is_wrong(rule.experts) ||
      std::ranges::any_of(rule.sub_parameters, is_wrong) ||
      std::ranges::any_of(rule.partition_sizes, is_wrong)) {
    return fmt::format("its partition rule has a number that is negative or above {}", kLargest);
  }
  if (rule.sub_parameters.size() > kMostWidths || rule.partition_sizes.size() > kMostWidths)
    return fmt::format("its partition rule has more than {} widths", kMostWidths);
  if (rule.experts > 0 && rule.kind == PartitionKind::vocabulary) {
    return "its partition rule says vocabulary and experts";
  }
  return {};
}

Result<TensorPart> cut_tensor(FullTensor whole, const PartitionRule& rule,
                              const ParallelPlace& place, const std::optional<Shape>& target) {
  const Shape whole_sizes = whole.sizes;
  auto block = take_expert_block(std::move(whole), rule, place.expert);
  if (!block) return tl::unexpected(block.error());
  auto cut = plan_cut(block->sizes, rule, place.tensor, target);
  if (!cut) return tl::unexpected(cut.error());
  if (auto fits = check_target(cut->plan.sizes, whole_sizes, target); !fits)
    return tl::unexpected(fits.error());
  if (!cut->plan.axis) return TensorPart{std::move(*block), std::move(cut->rule)};
  return TensorPart{made_of(std::span(&*block, 1), cut->plan), std::move(cut->rule)};
}

Result<FullTensor> join_tensor_parts(const std::vector<FullTensor>& parts,
                                     const PartitionRule& rule) {
  return joined(parts, plan_join(shapes_of(parts), rule));
}

Result<FullTensor> join_expert_blocks(const std::vector<FullTensor>& blocks) {
  if (blocks.size() == 1) return blocks.front();
  return joined(blocks, plan_concatenation(shapes_of(blocks), 0));
}

}  // namespace zeroproof
