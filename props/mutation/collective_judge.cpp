#include "props/mutation/collective_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/mutation/case_parameters.h"
#include "zeroproof/model/dtype.h"

namespace zeroproof::mutation {
namespace {

constexpr std::string_view kFallback = "engine.buffered_allreduce_fallback";
constexpr std::string_view kAverage = "z12.average_tensor";
constexpr std::string_view kStep = "z12.step";
constexpr std::string_view kEngineStep = "engine.step";  // stage 0 reduces in it
constexpr std::int64_t kAlignment = 2;                   // elements of one slice

bool has_one_dtype(const train::CaseSpec& spec) {
  return spec.engines == 1 &&
         static_cast<train::Precision>(spec.precision) != train::Precision::autocast;
}

// Whether the last micro-batch of a window alone reduces, and events say which that is.
bool reduces_at_boundary(const train::CaseSpec& spec) {
  const auto is_block = [](const train::MicroSpec& micro) { return micro.block != 0; };
  return spec.stage < 2 && spec.accumulation > 1 && spec.sets_boundary == 0 &&
         (spec.stage == 0 || spec.has_overlap == 0) && std::ranges::none_of(spec.micros, is_block);
}

// Whether each window is one round in no_sync, and one behind it.
bool reduces_second(const train::CaseSpec& spec) {
  const auto is_second = [](const train::MicroSpec& micro) {
    const train::MicroSpec second{.repeats = 1,
                                  .block = static_cast<int>(train::Block::no_sync_first)};
    return micro == second;
  };
  return spec.accumulation == 1 && spec.sets_boundary == 0 && spec.heads == 1 &&
         spec.needs_all == 0 && std::ranges::all_of(spec.micros, is_second);
}

bool sends_to_owners(const train::CaseSpec& spec) {
  return spec.reduces_to_owners != 0 && spec.reduces_whole == 0;
}

// As many as a step needs, where every part of each slice is sent by its owner.
std::int64_t gathers_max(const train::CaseSpec& spec) {
  if (!has_layers_alone(spec)) return INT64_MAX;
  std::int64_t elements = 0;
  for (const train::LayerSpec& layer : spec.layers) elements += layer.elements();
  const std::int64_t slices = elements / spec.ranks + kAlignment * spec.groups;
  const std::int64_t part = std::max(spec.gather_bucket / spec.ranks, 1);
  return spec.ranks * (slices / part + spec.groups);
}

}  // namespace

CollectiveJudge::CollectiveJudge(const train::CaseSpec& spec, const NameTable& names)
    : spec_(spec),
      names_(names),
      is_judged_(has_one_dtype(spec)),
      reduces_at_boundary_(reduces_at_boundary(spec)),
      reduces_second_(reduces_second(spec)),
      sends_to_owners_(sends_to_owners(spec)),
      gathers_max_(gathers_max(spec)) {
  const auto config = train::cell_of(spec).config;
  const bool is_shared = spec.sequence > 1;  // then sums of sequences travel in float32
  wire_item_bytes_ = item_bytes(is_shared ? DType::float32 : config->communication_dtype());
  model_item_bytes_ = item_bytes(config->model_dtype());
  wire_ = dtype_name(config->communication_dtype());
}

void CollectiveJudge::on_event(const HookEvent& event) {
  if (!is_judged_) return;
  switch (event.kind) {
    case EventKind::engine_call:
      return open(event);
    case EventKind::engine_return:
      return close(!event.is_exceptional());
    case EventKind::bucket_flush:
      return see_flush(event);
    case EventKind::coll_issue:
      return see_collective(event);
    default:
      return;
  }
}

void CollectiveJudge::find(std::string text) {
  if (finding_.empty()) finding_ = std::move(text);
}

bool CollectiveJudge::is_in(std::string_view method) const {
  return std::ranges::any_of(calls_,
                             [&](const Call& call) { return names_.text(call.name) == method; });
}

void CollectiveJudge::open(const HookEvent& event) {
  calls_.push_back({.name = event.name});
  if (event.micro_step >= 0) micro_ = event.micro_step;
  const bool is_reduction = names_.text(event.name) == kFallback;
  if (is_reduction && ++reductions_ > 1 && reduces_second_)
    find("gradients are reduced in no_sync");
  if (is_reduction && reduces_at_boundary_ && spec_.is_unmanaged == 0 &&
      (micro_ + 1) % spec_.accumulation != 0)
    find(fmt::format("the gradients of micro-batch {} are reduced, which is no boundary", micro_));
}

void CollectiveJudge::close(bool is_done) {
  if (calls_.empty()) return;
  const Call call = calls_.back();
  calls_.pop_back();
  const std::string_view method = names_.text(call.name);
  if (method == kEngineStep) reductions_ = 0;
  if (method == kStep && call.gathers > gathers_max_)
    find(
        fmt::format("a step gathered in {} pieces, and {} are enough", call.gathers, gathers_max_));
  if (method == kStep && spec_.has_overlap == 0 && call.gathers > spec_.groups)
    find(fmt::format("a step gathered {} parameter groups in {} pieces", spec_.groups,
                     call.gathers));
  if (method != kAverage) return;
  if (is_done && !sends_to_owners_ && flushed_ > 0 &&
      call.piece_bytes != flushed_ * wire_item_bytes_)
    find(fmt::format("{} elements travel in {} bytes, and the wire has {} each", flushed_,
                     call.piece_bytes, wire_item_bytes_));
  const bool is_whole = !sends_to_owners_ && spec_.is_scattered == 0;
  if (is_whole && flushed_ > 0 && flushed_ <= spec_.bucket && call.pieces > 1)
    find(fmt::format("a bucket of {} elements was reduced in {} pieces", flushed_, call.pieces));
  flushed_ = -1;
}

void CollectiveJudge::see_flush(const HookEvent& event) {
  if (names_.text(event.name) != wire_)
    find(
        fmt::format("a bucket travels in {}, and the wire has {}", names_.text(event.name), wire_));
  if (spec_.stage <= 2) flushed_ = event.numel;
  if (!reduces_at_boundary_) return;
  if (spec_.is_unmanaged != 0 && !is_in("engine.step"))
    find("gradients are reduced before the step that nobody manages the boundary of");
  if (spec_.is_unmanaged == 0 && (micro_ + 1) % spec_.accumulation != 0)
    find(fmt::format("the gradients of micro-batch {} are reduced, which is no boundary", micro_));
}

void CollectiveJudge::see_collective(const HookEvent& event) {
  if (is_in(kAverage)) return see_piece(event);
  if (is_in(kStep)) return see_gather(event);
}

void CollectiveJudge::see_piece(const HookEvent& event) {
  for (Call& call : calls_) {
    ++call.pieces;
    call.piece_bytes += event.bytes;
  }
  if (flushed_ < 0) return;
  const std::string_view op = names_.text(event.name);
  const bool fits = flushed_ <= spec_.bucket && spec_.is_scattered == 0;
  if (op == "reduce" && !sends_to_owners_)
    find("gradients go to their owners, and the configuration sends them to all");
  if (op == "all_reduce" && sends_to_owners_ && fits)
    find("gradients go to all, and the configuration sends them to their owners");
  if (op == "all_reduce" && fits && event.bytes != flushed_ * wire_item_bytes_)
    find(fmt::format("a bucket of {} elements travels in {} bytes, and the wire has {} each",
                     flushed_, event.bytes, wire_item_bytes_));
}

void CollectiveJudge::see_gather(const HookEvent& event) {
  const std::string_view op = names_.text(event.name);
  const bool is_gather = op == "all_gather_into_tensor";
  if (!is_gather && op != "broadcast") return;
  for (Call& call : calls_) ++call.gathers;
  if (spec_.ranks == 1) find("one rank gathers from nobody");
  const bool has_parts = spec_.has_overlap != 0 && spec_.is_offloaded == 0;
  const std::int64_t most = std::max(spec_.gather_bucket, spec_.ranks) * model_item_bytes_;
  if (has_parts && is_gather && event.bytes > most)
    find(fmt::format("a gather of {} bytes beside the update, which may have {}", event.bytes,
                     most));
  const std::int64_t slice = spec_.ranks * kAlignment * model_item_bytes_;
  if (!has_parts && is_gather && event.bytes % slice != 0)
    find(fmt::format("a gather of {} bytes, whose slices do not begin at every {} elements",
                     event.bytes, kAlignment));
  const bool has_room = spec_.gather_bucket >= train::CaseSpec::kGatherBucket;
  if (op == "broadcast" && (!has_parts || has_room)) find("values are sent slice by slice");
}

}  // namespace zeroproof::mutation
