#include "props/train/gathered_ranks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/runtime/host/rank_errors.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::train {
namespace {

using Json = nlohmann::json;

Json json_of(const std::vector<FullTensor>& tensors) {
  Json list = Json::array();
  for (const FullTensor& tensor : tensors)
    list.push_back({tensor.name, tensor.sizes, tensor.values});
  return list;
}

std::vector<FullTensor> tensors_of(const Json& list) {
  std::vector<FullTensor> tensors;
  for (const Json& tensor : list)
    tensors.push_back({tensor[0].get<std::string>(), tensor[1].get<Shape>(),
                       tensor[2].get<std::vector<double>>()});
  return tensors;
}

Json json_of(const WindowValues& window) {
  Json outcomes = Json::array();
  for (const StepOutcome& of : window.outcomes)
    outcomes.push_back(
        {of.is_applied, of.has_overflow, of.grad_norm ? Json(*of.grad_norm) : Json()});
  return {json_of(window.gradients),
          json_of(window.parameters),
          json_of(window.weights),
          json_of(window.states),
          json_of(window.records),
          json_of(window.counters),
          outcomes};
}

WindowValues window_of(const Json& json) {
  WindowValues window{tensors_of(json[0]),
                      tensors_of(json[1]),
                      tensors_of(json[2]),
                      tensors_of(json[3]),
                      tensors_of(json[4]),
                      tensors_of(json[5]),
                      {}};
  for (const Json& of : json[6]) {
    StepOutcome& outcome = window.outcomes.emplace_back();
    outcome.is_applied = of[0].get<bool>();
    outcome.has_overflow = of[1].get<bool>();
    if (!of[2].is_null()) outcome.grad_norm = of[2].get<double>();
  }
  return window;
}

Json json_of(const MemoryStats& stats) {
  return {stats.live_bytes, stats.peak_bytes, stats.allocations};
}

MemoryStats memory_of(const Json& json) {
  return {json[0].get<std::int64_t>(), json[1].get<std::int64_t>(), json[2].get<std::int64_t>()};
}

// Those after which a rank's process goes on: misuse that the engine refuses.
Json json_of(const std::exception_ptr& error) {
  if (!error) return nullptr;
  if (const auto id = engine_error_of(error)) return {static_cast<int>(*id), text_of(error)};
  return {-1, text_of(error)};
}

std::exception_ptr error_of(const Json& json) {
  if (json.is_null()) return nullptr;
  const int id = json[0].get<int>();
  const auto text = json[1].get<std::string>();
  if (id < 0) return std::make_exception_ptr(RuntimeFault(text));
  // The text begins with the name, which the constructor puts there.
  const auto known = static_cast<EngineErrorId>(id);
  const std::string prefix = EngineError(known, "").what();
  return std::make_exception_ptr(EngineError(known, text.substr(prefix.size())));
}

Json json_of(const RankRun& run) {
  Json windows = Json::array();
  for (const WindowValues& window : run.windows) windows.push_back(json_of(window));
  return {windows, run.loss_scale, json_of(run.memory), run.has_changed_gradients,
          json_of(run.error)};
}

void read(const Json& json, RankRun& run) {
  for (const Json& window : json[0]) run.windows.push_back(window_of(window));
  run.loss_scale = json[1].get<double>();
  run.memory = memory_of(json[2]);
  run.has_changed_gradients = json[3].get<bool>();
  run.error = error_of(json[4]);
}

Json json_of(const DecoderRank& rank) {
  return {rank.losses, rank.iterations_ns, json_of(rank.memory)};
}

void read(const Json& json, DecoderRank& rank) {
  rank.losses = json[0].get<std::vector<double>>();
  rank.iterations_ns = json[1].get<std::vector<std::int64_t>>();
  rank.memory = memory_of(json[2]);
}

// CBOR keeps the bits of a double.
template <class Rank>
void gather(Job& job, std::vector<Rank>& ranks) {
  const auto here = static_cast<std::size_t>(job.rank());
  try {
    const std::vector<std::uint8_t> mine = Json::to_cbor(json_of(ranks[here]));
    const auto all = job.all_gather({reinterpret_cast<const char*>(mine.data()), mine.size()});
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (rank != here) read(Json::from_cbor(all[rank]), ranks[rank]);
  } catch (const RuntimeFault&) {
    ranks[here].error = std::current_exception();
  }
}

}  // namespace

// An error of the engine ends a program and no process.
void gather_ranks(Job* job, std::vector<RankRun>& ranks) {
  if (job == nullptr) return;
  const std::exception_ptr& error = ranks[static_cast<std::size_t>(job->rank())].error;
  if (!error || engine_error_of(error)) gather(*job, ranks);
}

void gather_ranks(Job* job, std::vector<DecoderRank>& ranks) {
  if (job != nullptr && !ranks[static_cast<std::size_t>(job->rank())].error) gather(*job, ranks);
}

Result<void> agree(Job* job, const Result<void>& own) {
  if (job == nullptr) return own;
  const Json mine = own ? Json() : Json({static_cast<int>(own.error().code), own.error().text});
  for (const std::string& answer : job->all_gather(mine.dump())) {
    const Json theirs = Json::parse(answer);
    if (!theirs.is_null())
      return zeroproof::fail(static_cast<ErrorCode>(theirs[0].get<int>()),
                             theirs[1].get<std::string>());
  }
  return {};
}

std::string tell_others(Job& job, const std::exception_ptr& own) {
  const std::exception_ptr error = job.explained(own);
  if (!host::is_abort(error)) job.fail(host::abort_reason(job.rank(), error));
  return fmt::format("rank {}: {}", job.rank(), text_of(error));
}

}  // namespace zeroproof::train
