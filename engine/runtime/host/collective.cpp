#include "engine/runtime/host/collective.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/runtime/host/elements.h"
#include "engine/runtime/host/rounding.h"

namespace zeroproof::host {
namespace {

using Ranks = std::vector<const Collective*>;

constexpr std::array<std::string_view, 6> kNames = {"all_reduce", "reduce",    "reduce_scatter",
                                                    "all_gather", "broadcast", "barrier"};
constexpr std::array<std::string_view, 5> kGroupNames = {"data", "sequence", "tensor", "expert",
                                                         "expert_data"};
constexpr std::array<std::string_view, 3> kReduceNames = {"sum", "avg", "max"};

bool is_reduction(CollectiveOp op) {
  return op <= CollectiveOp::reduce_scatter;
}

bool has_root(CollectiveOp op) {
  return op == CollectiveOp::reduce || op == CollectiveOp::broadcast;
}

double combine(ReduceOp op, double total, double x) {
  if (op != ReduceOp::max) return total + x;
  return x > total || std::isnan(x) ? x : total;
}

// The inputs of all ranks, element by element, from the first to the last.
void reduce_into(std::vector<double>& scratch, const Ranks& ranks) {
  const Rounding round{ranks[0]->input.dtype()};
  const ReduceOp op = ranks[0]->reduce;
  scratch.clear();
  for_each_element(ranks[0]->input, [&](double x) { scratch.push_back(x); });
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    auto total = scratch.begin();
    for_each_element(ranks[r]->input, [&](double x) {
      *total = round(combine(op, *total, x));
      ++total;
    });
  }
  if (op != ReduceOp::avg) return;
  const auto size = static_cast<double>(ranks.size());
  for (double& total : scratch) total = round(total / size);
}

void gather_into(std::vector<double>& scratch, const Ranks& ranks) {
  scratch.clear();
  for (const Collective* rank : ranks)
    for_each_element(rank->input, [&](double x) { scratch.push_back(x); });
}

// The part of `scratch` from `begin` on, as much as the output takes.
void deliver(const std::vector<double>& scratch, std::int64_t begin, Span output) {
  auto from = scratch.begin() + begin;
  for_each_element(output, [&](double& to) { to = *from++; });
  note_write(output);
}

void deliver_to_root(const Ranks& ranks, const std::vector<double>& scratch, bool has_garbage) {
  constexpr double kGarbage = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (std::cmp_equal(r, ranks[r]->root)) {
      deliver(scratch, 0, ranks[r]->output);
    } else if (has_garbage) {
      for_each_element(ranks[r]->output, [](double& to) { to = kGarbage; });
      note_write(ranks[r]->output);
    }
  }
}

}  // namespace

std::string_view collective_name(CollectiveOp op) {
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view group_name(GroupKind kind) {
  return kGroupNames[static_cast<std::size_t>(kind)];
}

std::string description(const Collective& collective) {
  const CollectiveOp op = collective.op;
  std::string text(collective_name(op));
  if (is_reduction(op))
    text += fmt::format("({})", kReduceNames[static_cast<std::size_t>(collective.reduce)]);
  if (op == CollectiveOp::barrier) return text;
  const Span input = collective.input;
  text += fmt::format(" of {} {}", input.elements, dtype_name(input.dtype()));
  if (has_root(op)) text += fmt::format(", root {}", collective.root);
  return text;
}

bool is_same_kind(const Collective& a, const Collective& b) {
  if (a.op != b.op) return false;
  if (a.op == CollectiveOp::barrier) return true;
  if (is_reduction(a.op) && a.reduce != b.reduce) return false;
  if (has_root(a.op) && a.root != b.root) return false;
  return a.input.elements == b.input.elements && a.input.dtype() == b.input.dtype();
}

void run_collective(const Ranks& ranks, std::vector<double>& scratch, bool has_garbage) {
  const CollectiveOp op = ranks[0]->op;
  if (op == CollectiveOp::barrier) return;
  if (op == CollectiveOp::reduce_scatter) {
    reduce_into(scratch, ranks);
    std::int64_t begin = 0;
    for (const Collective* rank : ranks) {
      deliver(scratch, begin, rank->output);
      begin += rank->output.elements;
    }
    return;
  }
  if (is_reduction(op)) {
    reduce_into(scratch, ranks);
  } else if (op == CollectiveOp::all_gather) {
    gather_into(scratch, ranks);
  } else {
    gather_into(scratch, {ranks[static_cast<std::size_t>(ranks[0]->root)]});
  }
  if (op == CollectiveOp::reduce) return deliver_to_root(ranks, scratch, has_garbage);
  for (const Collective* rank : ranks) deliver(scratch, 0, rank->output);
}

}  // namespace zeroproof::host
