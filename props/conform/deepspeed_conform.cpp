#include "props/conform/deepspeed_conform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <map>

#include "props/conform/program_run.h"
#include "props/conform/recording.h"
#include "sim/trace/reader.h"
#include "zeroproof/engine/hooks/policies.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kTimeoutMs = 20'000;
constexpr double kRecordedFloat32Tolerance = 1e-5;  // the recorder's own
constexpr double kBf16Tolerance = 2e-2;

struct Mismatch {
  ConformStatus status = ConformStatus::agreed;
  std::string at;  // the recorded token, collective or tensor
  std::string detail;
};
using MaybeMismatch = std::optional<Mismatch>;

MaybeMismatch first_mismatch(ConformStatus status, const std::vector<std::string>& recorded,
                             const std::vector<std::string>& ours) {
  const auto word = [](const std::vector<std::string>& words, std::size_t i) {
    return i < words.size() ? words[i] : std::string("the end");
  };
  for (std::size_t i = 0; i < std::max(recorded.size(), ours.size()); ++i) {
    if (word(recorded, i) == word(ours, i)) continue;
    const char* what = status == ConformStatus::order_mismatch ? "token" : "collective";
    return Mismatch{
        status, word(recorded, i),
        fmt::format("{} {}: recorded {}, ours {}", what, i, word(recorded, i), word(ours, i))};
  }
  return std::nullopt;
}

// Every run of releases in the order of their names.
std::vector<std::string> with_sorted_releases(std::vector<std::string> tokens) {
  const auto is_release = [](const std::string& token) { return token.starts_with("part:"); };
  for (auto at = tokens.begin(); at != tokens.end();) {
    const auto begin = std::find_if(at, tokens.end(), is_release);
    at = std::find_if_not(begin, tokens.end(), is_release);
    std::sort(begin, at);
  }
  return tokens;
}

std::vector<std::string> without_prefix(std::vector<std::string> tokens, std::string_view prefix) {
  std::erase_if(tokens, [&](const std::string& token) { return token.starts_with(prefix); });
  return tokens;
}

// The recorded tokens without those that are too much where ours go on without them.
std::vector<std::string> without_surplus(const std::vector<std::string>& recorded,
                                         const std::vector<std::string>& ours,
                                         const std::string& surplus) {
  std::vector<std::string> kept;
  for (const std::string& token : recorded) {
    const bool differs = kept.size() >= ours.size() || ours[kept.size()] != token;
    if (!differs || token != surplus) kept.push_back(token);
  }
  return kept;
}

std::vector<std::string> texts(const std::vector<CollectiveCall>& calls) {
  std::vector<std::string> all;
  for (const CollectiveCall& call : calls) all.push_back(call.text());
  return all;
}

bool is_result(const TensorRecord& tensor) {
  return tensor.role == "grad" || tensor.role == "output" || tensor.role == "param_final";
}

bool is_zero(const TensorRecord& tensor) {
  return !tensor.values ||
         std::ranges::all_of(*tensor.values, [](double value) { return value == 0.0; });
}

// Names come again: the key has how often.
using Results = std::map<std::tuple<std::string, std::string, int>, const TensorRecord*>;

Results results_of(const DeepspeedRecording& recording) {
  Results results;
  std::map<std::pair<std::string, std::string>, int> seen;
  for (const TensorRecord& tensor : recording.tensors)
    if (is_result(tensor))
      results[{tensor.role, tensor.name, seen[{tensor.role, tensor.name}]++}] = &tensor;
  return results;
}

// In units of the largest value, or of one.
double finite_deviation(const std::vector<double>& recorded, const std::vector<double>& ours) {
  double scale = 1.0;
  for (const double value : recorded) scale = std::max(scale, std::abs(value));
  double worst = 0.0;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const double distance = std::abs(recorded[i] - ours[i]) / scale;
    worst = std::isnan(distance) ? INFINITY : std::max(worst, distance);
  }
  return worst;
}

class RankComparison {
 public:
  RankComparison(const DeepspeedRecording& recorded, const DeepspeedRecording& ours,
                 ConformOutcome& outcome)
      : recorded_(recorded), ours_(ours), outcome_(outcome) {}

  MaybeMismatch run() {
    outcome_.tokens += recorded_.tokens.size();
    if (auto order = order_mismatch(recorded_.tokens)) return order;
    return mismatch_besides_order();
  }

  // What differs besides a known difference that begins at that token or tensor. Where it is
  // neither surplus nor moved tokens, the rest follows from it and is not compared.
  MaybeMismatch run_besides(const KnownDifference& known, const std::string& at) {
    MaybeMismatch order;
    if (!known.moved.empty()) {
      order = first_mismatch(ConformStatus::order_mismatch,
                             without_prefix(recorded_.tokens, known.moved),
                             without_prefix(ours_.tokens, known.moved));
    } else if (known.is_surplus) {
      order = order_mismatch(without_surplus(recorded_.tokens, ours_.tokens, at));
    } else {
      return std::nullopt;
    }
    return order ? order : mismatch_besides_order();
  }

 private:
  MaybeMismatch order_mismatch(const std::vector<std::string>& recorded) {
    const auto plain = first_mismatch(ConformStatus::order_mismatch, recorded, ours_.tokens);
    if (!plain) return std::nullopt;
    auto any_order = first_mismatch(ConformStatus::order_mismatch, with_sorted_releases(recorded),
                                    with_sorted_releases(ours_.tokens));
    if (any_order) return any_order;
    outcome_.is_race = true;
    return std::nullopt;
  }

  MaybeMismatch mismatch_besides_order() {
    if (auto collectives = first_mismatch(ConformStatus::collective_mismatch,
                                          texts(recorded_.collectives), texts(ours_.collectives)))
      return collectives;
    return value_mismatch();
  }

  MaybeMismatch value_mismatch() {
    const Results recorded = results_of(recorded_);
    const Results ours = results_of(ours_);
    for (const auto& [key, tensor] : recorded) {
      const auto at = ours.find(key);
      const std::string text =
          at == ours.end() ? "recorded, but not ours" : difference(*tensor, *at->second);
      if (!text.empty()) return value_mismatch(*tensor, text);
    }
    for (const auto& [key, tensor] : ours)
      if (!recorded.contains(key) && !is_zero(*tensor))
        return value_mismatch(*tensor, "ours, but not recorded");
    return std::nullopt;
  }

  static Mismatch value_mismatch(const TensorRecord& tensor, const std::string& text) {
    const std::string name = fmt::format("{} {}", tensor.role, tensor.name);
    return {ConformStatus::value_mismatch, name, fmt::format("{}: {}", name, text)};
  }

  // Empty for none.
  std::string difference(const TensorRecord& recorded, const TensorRecord& ours) {
    ++outcome_.tensors;
    if (!recorded.values || !ours.values)
      return is_zero(recorded) && is_zero(ours) ? "" : "one of the two has no values";
    if (recorded.shape != ours.shape) return "another shape";
    const double worst = finite_deviation(*recorded.values, *ours.values);
    outcome_.worst = std::max(outcome_.worst, worst);
    const double allowed =
        recorded_.header.dtype == "bf16" ? kBf16Tolerance : kRecordedFloat32Tolerance;
    return worst <= allowed ? "" : fmt::format("off by {:.3g}, allowed {:.3g}", worst, allowed);
  }

  const DeepspeedRecording& recorded_;
  const DeepspeedRecording& ours_;
  ConformOutcome& outcome_;
};

std::string run_name(const HeaderRecord& header) {
  return fmt::format("{} stage {} {} world {}", header.program, header.stage.value_or(0),
                     header.dtype, header.world);
}

// A known difference does not explain any other difference.
void compare_rank(const DeepspeedRecording& recorded, const DeepspeedRecording& ours,
                  ConformOutcome& outcome) {
  RankComparison comparison(recorded, ours, outcome);
  auto mismatch = comparison.run();
  if (!mismatch) return;
  const KnownDifference* known = find_known_difference(recorded);
  const bool is_known =
      known && (!known->moved.empty() || std::ranges::count(known->at, mismatch->at) > 0);
  if (is_known) {
    if (auto rest = comparison.run_besides(*known, mismatch->at)) {
      outcome.status = rest->status;
      outcome.detail = fmt::format("rank {}, {}", recorded.header.rank, rest->detail);
      return;
    }
  }
  outcome.status = is_known ? ConformStatus::explained : mismatch->status;
  outcome.detail = fmt::format("rank {}, {}{}", recorded.header.rank, mismatch->detail,
                               is_known ? ": " + known->reason : "");
}

bool can_skip_policy(const ConformOutcome& outcome) {
  return outcome.status == ConformStatus::agreed || outcome.status == ConformStatus::explained;
}

}  // namespace

bool KnownDifference::covers(const DeepspeedRecording& recorded) const {
  const HeaderRecord& header = recorded.header;
  const auto has = [](const auto& values, const auto& value) {
    return std::ranges::count(values, value) > 0;
  };
  return (scenarios.empty() || has(scenarios, header.program)) && has(stages, header.stage) &&
         releases.contains(recorded.release) && (dtype.empty() || dtype == header.dtype) &&
         (accelerator.empty() || accelerator == recorded_version(header, "accelerator"));
}

const KnownDifference* find_known_difference(const DeepspeedRecording& recorded) {
  for (const KnownDifference& known : known_differences())
    if (known.covers(recorded)) return &known;
  return nullptr;
}

std::vector<DeepspeedRecording> run_as_recorded(const std::vector<DeepspeedRecording>& ranks,
                                                const EngineBehaviour& behaviour) {
  const DeepspeedProgram* program = find_deepspeed_program(ranks.at(0).header.program);
  HostWorldOptions options;
  options.world_size = static_cast<int>(ranks.size());
  options.device = Device::cuda(0);
  options.timeout_ms = kTimeoutMs;
  std::deque<DeepspeedNotes> notes;
  for (const DeepspeedRecording& recorded : ranks)
    options.observers.push_back({.journal = &notes.emplace_back(recorded.header).journal});
  HostWorld world(options);
  world.run([&](Runtime& runtime) {
    const auto rank = static_cast<std::size_t>(runtime.rank());
    DeepspeedRun run(ranks[rank], notes[rank], runtime, behaviour);
    run.guarded([&] { program->run(run); });
    run.finish();
  });
  std::vector<DeepspeedRecording> recordings;
  for (DeepspeedNotes& taken : notes) recordings.push_back(std::move(taken.recording));
  return recordings;
}

EngineBehaviour recorded_behaviour(const DeepspeedRecording& recorded) {
  EngineBehaviour behaviour;
  if (recorded.release == Release{}) return behaviour;
  for (const PolicyInfo& policy : policy_catalogue()) {
    if (!policy.releases || policy.releases->first > recorded.release) continue;
    behaviour.policy = policy.id;
  }
  return behaviour;
}

ConformOutcome conform_deepspeed(const std::vector<DeepspeedRecording>& ranks) {
  return conform_deepspeed(ranks, recorded_behaviour(ranks.at(0)));
}

ConformOutcome conform_deepspeed(const std::vector<DeepspeedRecording>& ranks,
                                 const EngineBehaviour& behaviour) {
  const HeaderRecord& header = ranks.at(0).header;
  ConformOutcome outcome{.program = run_name(header)};
  if (!find_deepspeed_program(header.program)) {
    outcome.detail = "not ported";
    return outcome;
  }
  outcome.status = ConformStatus::agreed;
  const std::vector<DeepspeedRecording> ours = run_as_recorded(ranks, behaviour);
  for (std::size_t rank = 0; rank < ranks.size() && can_skip_policy(outcome); ++rank)
    compare_rank(ranks[rank], ours[rank], outcome);
  return outcome;
}

Result<bool> is_training_trace(const std::string& path) {
  NameTable names;
  const auto reader = TraceReader::open(path, names);
  if (!reader) return tl::unexpected(reader.error());
  return reader->header().stage.has_value();
}

Result<std::vector<std::string>> rank_paths(const std::string& path) {
  NameTable names;
  const auto reader = TraceReader::open(path, names);
  if (!reader) return tl::unexpected(reader.error());
  const HeaderRecord& header = reader->header();
  if (header.world == 1) return std::vector<std::string>{path};
  const std::string own = fmt::format("_r{}.", header.rank);
  const std::size_t at = path.rfind(own);
  if (at == std::string::npos)
    return fail(
        ErrorCode::unreadable,
        fmt::format("{}: a trace of one rank of {} has {} in its name, so that those of the "
                    "others are found",
                    path, header.world, own));
  std::vector<std::string> paths;
  for (int rank = 0; rank < header.world; ++rank)
    paths.push_back(path.substr(0, at) + fmt::format("_r{}.", rank) + path.substr(at + own.size()));
  return paths;
}

Result<ConformOutcome> conform_deepspeed(const std::vector<std::string>& paths) {
  std::vector<DeepspeedRecording> ranks;
  for (const std::string& path : paths) {
    auto recorded = read_deepspeed_recording(path);
    if (!recorded) return tl::unexpected(recorded.error());
    ranks.push_back(std::move(*recorded));
  }
  try {
    ConformOutcome outcome = conform_deepspeed(ranks);
    outcome.path = paths.front();
    return outcome;
  } catch (const MissingTensor& missing) {
    return fail(ErrorCode::unreadable, fmt::format("{}: {}", paths.front(), missing.what()));
  }
}

}  // namespace zeroproof
