#include "engine/checkpoint/axis_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/check.h"

namespace zeroproof {
namespace {

using Runs = std::vector<AxisRun>;

tl::unexpected<Error> misfit(std::string text) {
  return fail(ErrorCode::usage, std::move(text));
}

bool has_axis(const Shape& sizes, std::int64_t axis) {
  return axis >= 0 && axis < std::ssize(sizes);
}

std::int64_t width_of(const Shape& sizes, std::int64_t axis) {
  return sizes[static_cast<std::size_t>(axis)];
}

Shape with_width(Shape sizes, std::int64_t axis, std::int64_t width) {
  sizes[static_cast<std::size_t>(axis)] = width;
  return sizes;
}

std::int64_t sum_of(const Shape& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
}

AxisPlan as_it_is(const Shape& sizes) {
  return {.axis = std::nullopt, .runs = {}, .sizes = sizes};
}

AxisPlan along(std::int64_t axis, Runs runs, const Shape& sizes) {
  std::int64_t width = 0;
  for (const AxisRun& run : runs) width += run.count;
  return {.axis = axis, .runs = std::move(runs), .sizes = with_width(sizes, axis, width)};
}

// Of one rank, where every width divides by the number of ranks.
Result<Runs> even_runs(const Shape& widths, const PartitionRule& rule, const ParallelRank& tensor) {
  Runs runs;
  std::int64_t begin = 0;
  for (const std::int64_t width : widths) {
    if (width % tensor.size != 0) {
      return misfit(fmt::format(
          "{} along axis {} do not divide by a tensor-parallel size of {}; load with a size that "
          "divides, or record partition sizes when saving",
          width, rule.axis, tensor.size));
    }
    const std::int64_t share = width / tensor.size;
    runs.push_back({.begin = begin + tensor.rank * share, .count = share});
    begin += width;
  }
  return runs;
}

// Sub-parameters before recorded sizes before equal parts.
Result<Runs> runs_of(std::int64_t width, const PartitionRule& rule, const ParallelRank& tensor) {
  if (!rule.sub_parameters.empty()) {
    if (sum_of(rule.sub_parameters) != width) {
      return misfit(fmt::format("its sub-parameters {} do not add up to {}",
                                shape_text(rule.sub_parameters), width));
    }
    return even_runs(rule.sub_parameters, rule, tensor);
  }
  const Shape& recorded = rule.partition_sizes;
  if (recorded.size() != static_cast<std::size_t>(tensor.size)) {
    return even_runs({width}, rule, tensor);
  }
  if (sum_of(recorded) != width) {
    return misfit(fmt::format("its recorded partition sizes {} do not add up to {}",
                              shape_text(recorded), width));
  }
  const Shape before(recorded.begin(), recorded.begin() + tensor.rank);
  return Runs{{.begin = sum_of(before), .count = recorded[static_cast<std::size_t>(tensor.rank)]}};
}

Result<CutPlan> cut_along_axis(const Shape& whole, PartitionRule rule, const ParallelRank& tensor) {
  if (!has_axis(whole, rule.axis)) {
    return misfit(
        fmt::format("shape {} has no axis {} to cut along", shape_text(whole), rule.axis));
  }
  auto runs = runs_of(width_of(whole, rule.axis), rule, tensor);
  if (!runs) return tl::unexpected(runs.error());
  return CutPlan{along(rule.axis, std::move(*runs), whole), std::move(rule)};
}

// No rule is recorded: the shapes alone decide.
Result<CutPlan> cut_inferred(const Shape& whole, PartitionRule rule, const ParallelRank& tensor,
                             const std::optional<Shape>& target) {
  if (target && numel(whole) != numel(*target) * tensor.size) {
    return misfit(fmt::format(
        "shape {} is neither this engine's {} nor {} times as large; load into the model that it "
        "was saved from",
        shape_text(whole), shape_text(*target), tensor.size));
  }
  if (tensor.size > 1) rule.kind = PartitionKind::sliced;
  return cut_along_axis(whole, std::move(rule), tensor);
}

// Rows that are padding already stay as they are if as many are needed: a step may have moved them.
Result<CutPlan> cut_vocabulary(const Shape& whole, PartitionRule rule, const ParallelRank& tensor,
                               const std::optional<Shape>& target) {
  if (whole.empty() || (target && target->empty())) return misfit("a vocabulary has rows");
  if (rule.vocabulary_rows == 0) rule.vocabulary_rows = whole.front();
  if (rule.vocabulary_rows > whole.front()) {
    return misfit(
        fmt::format("it has {} rows where {} are recorded", whole.front(), rule.vocabulary_rows));
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
  const std::int64_t kept = whole.front() == rows ? rows : rule.vocabulary_rows;
  const std::int64_t begin = std::min(tensor.rank * share, kept);
  const std::int64_t count = std::min(share, kept - begin);
  Runs runs{{.begin = begin, .count = count},
            {.part = AxisRun::kZeros, .begin = 0, .count = share - count}};
  return CutPlan{along(0, std::move(runs), whole), std::move(rule)};
}

// As it is: the shapes agree, or no rank asked for less.
CutPlan uncut(const Shape& whole, PartitionRule rule, const ParallelRank& tensor) {
  if (tensor.size > 1) rule = {.kind = PartitionKind::replicated, .experts = rule.experts};
  return {as_it_is(whole), std::move(rule)};
}

// Rank-major comes in, sub-parameter-major goes out.
Result<AxisPlan> in_order_of_sub_parameters(const AxisPlan& ranks, const std::vector<Shape>& parts,
                                            const PartitionRule& rule) {
  for (const Shape& part : parts)
    if (part != parts.front()) return misfit("its parts with sub-parameters differ");
  const int size = static_cast<int>(parts.size());
  const auto shares = runs_of(width_of(ranks.sizes, rule.axis), rule, {0, size});
  if (!shares) return tl::unexpected(shares.error());
  Runs runs;
  std::int64_t before = 0;
  for (const AxisRun& share : *shares) {
    for (int part = 0; part < size; ++part) runs.push_back({part, before, share.count});
    before += share.count;
  }
  return along(rule.axis, std::move(runs), ranks.sizes);
}

// The positions [begin, begin + count) of what a plan makes.
void append_runs(const AxisPlan& plan, std::int64_t begin, std::int64_t count, Runs& runs) {
  std::int64_t at = 0;
  for (const AxisRun& run : plan.runs) {
    const std::int64_t from = std::max(begin, at);
    const std::int64_t to = std::min(begin + count, at + run.count);
    if (from < to) runs.push_back({run.part, run.begin + from - at, to - from});
    at += run.count;
  }
}

}  // namespace

std::string shape_text(const Shape& sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

Result<CutPlan> plan_cut(const Shape& whole, const PartitionRule& rule, const ParallelRank& tensor,
                         const std::optional<Shape>& target) {
  const bool is_whole = target ? whole == *target : tensor.size == 1;
  switch (rule.kind) {
    case PartitionKind::replicated:
      return CutPlan{as_it_is(whole), rule};
    case PartitionKind::sliced:
      return cut_along_axis(whole, rule, tensor);
    case PartitionKind::unsupported:
      if (tensor.size == 1) return CutPlan{as_it_is(whole), rule};
      return misfit(
          fmt::format("its partition is not supported: {}; load with a tensor-parallel "
                      "size of 1",
                      rule.note));
    case PartitionKind::inferred:
      if (is_whole) return uncut(whole, rule, tensor);
      return cut_inferred(whole, rule, tensor, target);
    case PartitionKind::vocabulary:
      if (is_whole) return uncut(whole, rule, tensor);
      return cut_vocabulary(whole, rule, tensor, target);
  }
  return misfit("its rule is of no known kind");
}

Result<AxisPlan> plan_concatenation(const std::vector<Shape>& parts, std::int64_t axis) {
  const Shape& first = parts.front();
  Runs runs;
  for (const Shape& part : parts) {
    if (!has_axis(first, axis) || part.size() != first.size() ||
        with_width(part, axis, 0) != with_width(first, axis, 0)) {
      return misfit(fmt::format("parts of shapes {} and {} do not join along axis {}",
                                shape_text(first), shape_text(part), axis));
    }
    runs.push_back({static_cast<int>(runs.size()), 0, width_of(part, axis)});
  }
  return along(axis, std::move(runs), first);
}

Result<AxisPlan> plan_join(const std::vector<Shape>& parts, const PartitionRule& rule) {
  if (parts.size() == 1 || rule.kind == PartitionKind::replicated) return as_it_is(parts.front());
  const bool is_vocabulary = rule.kind == PartitionKind::vocabulary;
  auto whole = plan_concatenation(parts, is_vocabulary ? 0 : rule.axis);
  if (!whole || is_vocabulary || rule.sub_parameters.empty()) return whole;
  return in_order_of_sub_parameters(*whole, parts, rule);
}

Result<void> check_target(const Shape& part, const Shape& whole,
                          const std::optional<Shape>& target) {
  if (!target || part == *target) return {};
  return misfit(fmt::format(
      "shape {} (whole: {}) where this engine has {}; load into the model that it was saved from",
      shape_text(part), shape_text(whole), shape_text(*target)));
}

AxisPlan composed(const AxisPlan& outer, const AxisPlan& inner) {
  if (!outer.axis) return inner;
  if (!inner.axis) return outer;
  ZP_CHECK(*outer.axis == *inner.axis, "a tensor is joined along one axis and cut along another");
  AxisPlan plan{.axis = outer.axis, .runs = {}, .sizes = outer.sizes};
  for (const AxisRun& run : outer.runs) {
    if (run.part == AxisRun::kZeros)
      plan.runs.push_back(run);
    else
      append_runs(inner, run.begin, run.count, plan.runs);
  }
  return plan;
}

Result<CutPlan> plan_reshard(const std::vector<Shape>& parts, const PartitionRule& rule,
                             const ParallelRank& tensor, const std::optional<Shape>& target) {
  const auto whole = plan_join(parts, rule);
  if (!whole) return tl::unexpected(whole.error());
  auto cut = plan_cut(whole->sizes, rule, tensor, target);
  if (!cut) return cut;
  if (auto fits = check_target(cut->plan.sizes, whole->sizes, target); !fits)
    return tl::unexpected(fits.error());
  cut->plan = composed(cut->plan, *whole);
  return cut;
}

void each_piece(const AxisPlan& plan, const std::vector<Shape>& parts, std::int64_t begin,
                std::int64_t elements, const std::function<bool(const PartPiece&)>& take) {
  if (elements == 0) return;
  if (!plan.axis) {
    take({0, begin, elements});
    return;
  }
  const std::int64_t axis = *plan.axis;
  const std::int64_t inner = numel(Shape(plan.sizes.begin() + axis + 1, plan.sizes.end()));
  const std::int64_t row = width_of(plan.sizes, axis) * inner;
  const std::int64_t end = begin + elements;
  for (std::int64_t outer = begin / row; outer * row < end; ++outer) {
    std::int64_t at = outer * row;
    for (const AxisRun& run : plan.runs) {
      const std::int64_t from = std::max(begin, at);
      const std::int64_t to = std::min(end, at + run.count * inner);
      PartPiece piece{.part = run.part, .begin = 0, .elements = to - from};
      if (run.part != AxisRun::kZeros) {
        const std::int64_t width = width_of(parts[static_cast<std::size_t>(run.part)], axis);
        piece.begin = (outer * width + run.begin) * inner + from - at;
      }
      if (piece.elements > 0 && !take(piece)) return;
      at += run.count * inner;
    }
  }
}

}  // namespace zeroproof
