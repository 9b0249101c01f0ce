#include "engine/checkpoint/tensor_parallel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace zeroproof {
namespace {

struct RowRange {
  std::int64_t begin;
  std::int64_t count;
};
using Ranges = std::vector<RowRange>;

tl::unexpected<Error> misfit(std::string text) {
  return fail(ErrorCode::usage, std::move(text));
}

bool has_axis(const FullTensor& tensor, std::int64_t axis) {
  return axis >= 0 && axis < static_cast<std::int64_t>(tensor.sizes.size());
}

std::int64_t width_of(const FullTensor& tensor, std::int64_t axis) {
  return tensor.sizes[static_cast<std::size_t>(axis)];
}

std::int64_t sum_of(const Shape& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
}

// The ranges along one axis, in a row.
FullTensor take(const FullTensor& from, std::int64_t axis, const Ranges& ranges) {
  FullTensor result{from.name, from.sizes, {}};
  std::int64_t taken = 0;
  for (const RowRange& range : ranges) taken += range.count;
  result.sizes[static_cast<std::size_t>(axis)] = taken;
  result.values.reserve(static_cast<std::size_t>(numel(result.sizes)));
  const Shape inner_sizes(from.sizes.begin() + axis + 1, from.sizes.end());
  const std::int64_t inner = numel(inner_sizes);
  const std::int64_t row = width_of(from, axis) * inner;
  const std::int64_t rows = row == 0 ? 0 : numel(from.sizes) / row;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (const RowRange& range : ranges) {
      const auto begin = from.values.begin() + r * row + range.begin * inner;
      result.values.insert(result.values.end(), begin, begin + range.count * inner);
    }
  }
  return result;
}

Shape with_width(Shape sizes, std::int64_t axis, std::int64_t width) {
  sizes[static_cast<std::size_t>(axis)] = width;
  return sizes;
}

// Every part of the same shape but for the axis.
Result<FullTensor> concatenate(const std::vector<FullTensor>& parts, std::int64_t axis) {
  const FullTensor& first = parts.front();
  std::int64_t width = 0;
  for (const FullTensor& part : parts) {
    if (!has_axis(first, axis) || part.sizes.size() != first.sizes.size() ||
        with_width(part.sizes, axis, 0) != with_width(first.sizes, axis, 0)) {
      return misfit(fmt::format("parts of shapes {} and {} do not join along axis {}",
                                shape_text(first.sizes), shape_text(part.sizes), axis));
    }
    width += width_of(part, axis);
  }
  FullTensor whole{first.name, with_width(first.sizes, axis, width), {}};
  const Shape outer_sizes(whole.sizes.begin(), whole.sizes.begin() + axis);
  const std::int64_t outer = numel(outer_sizes);
  whole.values.reserve(static_cast<std::size_t>(numel(whole.sizes)));
  for (std::int64_t r = 0; r < outer; ++r) {
    for (const FullTensor& part : parts) {
      const std::int64_t row = numel(part.sizes) / outer;
      const auto begin = part.values.begin() + r * row;
      whole.values.insert(whole.values.end(), begin, begin + row);
    }
  }
  return whole;
}

// Of one rank, where every width divides by the number of ranks.
Result<Ranges> even_ranges(const Shape& widths, const PartitionRule& rule, ParallelRank tensor) {
  Ranges ranges;
  std::int64_t begin = 0;
  for (const std::int64_t width : widths) {
    if (width % tensor.size != 0) {
      return misfit(fmt::format(
          "{} along axis {} do not divide by a tensor-parallel size of {}; load with a size that "
          "divides, or record partition sizes when saving",
          width, rule.axis, tensor.size));
    }
    const std::int64_t share = width / tensor.size;
    ranges.push_back({begin + tensor.rank * share, share});
    begin += width;
  }
  return ranges;
}

// Sub-parameters before recorded sizes before equal parts.
Result<Ranges> ranges_of(std::int64_t width, const PartitionRule& rule, ParallelRank tensor) {
  if (!rule.sub_parameters.empty()) {
    if (sum_of(rule.sub_parameters) != width) {
      return misfit(fmt::format("its sub-parameters {} do not add up to {}",
                                shape_text(rule.sub_parameters), width));
    }
    return even_ranges(rule.sub_parameters, rule, tensor);
  }
  const Shape& recorded = rule.partition_sizes;
  if (recorded.size() != static_cast<std::size_t>(tensor.size)) {
    return even_ranges({width}, rule, tensor);
  }
  if (sum_of(recorded) != width) {
    return misfit(fmt::format("its recorded partition sizes {} do not add up to {}",
                              shape_text(recorded), width));
  }
  const Shape before(recorded.begin(), recorded.begin() + tensor.rank);
  return Ranges{{sum_of(before), recorded[static_cast<std::size_t>(tensor.rank)]}};
}

Result<TensorPart> cut_along_axis(FullTensor whole, PartitionRule rule, ParallelRank tensor) {
  if (!has_axis(whole, rule.axis)) {
    return misfit(
        fmt::format("shape {} has no axis {} to cut along", shape_text(whole.sizes), rule.axis));
  }
  const auto ranges = ranges_of(width_of(whole, rule.axis), rule, tensor);
  if (!ranges) return tl::unexpected(ranges.error());
  return TensorPart{take(whole, rule.axis, *ranges), std::move(rule)};
}

// No rule is recorded: the shapes alone decide.
Result<TensorPart> cut_inferred(FullTensor whole, PartitionRule rule, ParallelRank tensor,
                                const std::optional<Shape>& target) {
  if (target && numel(whole.sizes) != numel(*target) * tensor.size) {
    return misfit(fmt::format(
        "shape {} is neither this engine's {} nor {} times as large; load into the model that it "
        "was saved from",
        shape_text(whole.sizes), shape_text(*target), tensor.size));
  }
  if (tensor.size > 1) rule.kind = PartitionKind::sliced;
  return cut_along_axis(std::move(whole), std::move(rule), tensor);
}

void set_rows(FullTensor& tensor, std::int64_t rows) {
  tensor.sizes.front() = rows;
  tensor.values.resize(static_cast<std::size_t>(numel(tensor.sizes)), 0.0);
}

// Rows that are padding already stay as they are if as many are needed: a step may have moved them.
Result<TensorPart> cut_vocabulary(FullTensor whole, PartitionRule rule, ParallelRank tensor,
                                  const std::optional<Shape>& target) {
  if (whole.sizes.empty() || (target && target->empty())) return misfit("a vocabulary has rows");
  if (rule.vocabulary_rows == 0) rule.vocabulary_rows = whole.sizes.front();
  if (rule.vocabulary_rows > whole.sizes.front()) {
    return misfit(fmt::format("it has {} rows where {} are recorded", whole.sizes.front(),
                              rule.vocabulary_rows));
  }
  const std::int64_t share =
      target ? target->front() : (rule.vocabulary_rows + tensor.size - 1) / tensor.size;
  const std::int64_t rows = share * tensor.size;
  if (rows < rule.vocabulary_rows) {
    return misfit(fmt::format(
        "a vocabulary of {} rows does not fit into {} rows on each of {} ranks; pad this engine's "
        "embedding to more rows",
        rule.vocabulary_rows, share, tensor.size));
  }
  if (whole.sizes.front() != rows) {
    set_rows(whole, rule.vocabulary_rows);
    set_rows(whole, rows);
  }
  FullTensor part = take(whole, 0, {{tensor.rank * share, share}});
  return TensorPart{std::move(part), std::move(rule)};
}

Result<FullTensor> take_expert_block(FullTensor whole, const PartitionRule& rule,
                                     ParallelRank expert) {
  if (rule.experts == 0 || expert.size == 1) return whole;
  const std::int64_t rows = whole.sizes.empty() ? 0 : whole.sizes.front();
  if (rows != rule.experts || rows % expert.size != 0) {
    return misfit(fmt::format(
        "{} experts are recorded and {} are there, for an expert-parallel size of {}; load with a "
        "size that divides them",
        rule.experts, rows, expert.size));
  }
  const std::int64_t share = rows / expert.size;
  return take(whole, 0, {{expert.rank * share, share}});
}

// As it is: the shapes agree, or no rank asked for less.
TensorPart uncut(FullTensor whole, PartitionRule rule, ParallelRank tensor) {
  if (tensor.size > 1) rule = {.kind = PartitionKind::replicated, .experts = rule.experts};
  return TensorPart{std::move(whole), std::move(rule)};
}

Result<TensorPart> cut_by_kind(FullTensor whole, const PartitionRule& rule, ParallelRank tensor,
                               const std::optional<Shape>& target) {
  const bool is_whole = target ? whole.sizes == *target : tensor.size == 1;
  switch (rule.kind) {
    case PartitionKind::replicated:
      return TensorPart{std::move(whole), rule};
    case PartitionKind::sliced:
      return cut_along_axis(std::move(whole), rule, tensor);
    case PartitionKind::unsupported:
      if (tensor.size == 1) return TensorPart{std::move(whole), rule};
      return misfit(
          fmt::format("its partition is not supported: {}; load with a tensor-parallel "
                      "size of 1",
                      rule.note));
    case PartitionKind::inferred:
      if (is_whole) return uncut(std::move(whole), rule, tensor);
      return cut_inferred(std::move(whole), rule, tensor, target);
    case PartitionKind::vocabulary:
      if (is_whole) return uncut(std::move(whole), rule, tensor);
      return cut_vocabulary(std::move(whole), rule, tensor, target);
  }
  return misfit("its rule is of no known kind");
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

std::string shape_text(const Shape& sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

Result<TensorPart> cut_tensor(FullTensor whole, const PartitionRule& rule,
                              const ParallelPlace& place, const std::optional<Shape>& target) {
  const Shape whole_sizes = whole.sizes;
  auto block = take_expert_block(std::move(whole), rule, place.expert);
  if (!block) return tl::unexpected(block.error());
  auto part = cut_by_kind(std::move(*block), rule, place.tensor, target);
  if (part && target && part->tensor.sizes != *target) {
    return misfit(fmt::format(
        "shape {} (whole: {}) where this engine has {}; load into the model that it was saved from",
        shape_text(part->tensor.sizes), shape_text(whole_sizes), shape_text(*target)));
  }
  return part;
}

Result<FullTensor> join_tensor_parts(const std::vector<FullTensor>& parts,
                                     const PartitionRule& rule) {
  if (parts.size() == 1 || rule.kind == PartitionKind::replicated) return parts.front();
  const std::int64_t axis = rule.kind == PartitionKind::vocabulary ? 0 : rule.axis;
  auto whole = concatenate(parts, axis);
  if (!whole || rule.kind == PartitionKind::vocabulary || rule.sub_parameters.empty()) return whole;
  for (const FullTensor& part : parts) {
    if (part.sizes != parts.front().sizes) return misfit("its parts with sub-parameters differ");
  }
  // Rank-major comes in, sub-parameter-major goes out.
  const int ranks = static_cast<int>(parts.size());
  const auto shares = ranges_of(width_of(*whole, axis), rule, {0, ranks});
  if (!shares) return tl::unexpected(shares.error());
  Ranges order;
  std::int64_t before = 0;
  for (const RowRange& share : *shares) {
    for (int r = 0; r < ranks; ++r) {
      order.push_back({r * width_of(parts.front(), axis) + before, share.count});
    }
    before += share.count;
  }
  return take(*whole, axis, order);
}

Result<FullTensor> join_expert_blocks(const std::vector<FullTensor>& blocks) {
  if (blocks.size() == 1) return blocks.front();
  return concatenate(blocks, 0);
}

}  // namespace zeroproof
