#include "props/replay/run_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "props/replay/moment.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

constexpr double kSameNorm = 1e-4;  // relative: two norms that one limit has set
constexpr std::size_t kCommonStepsMin = 2;

enum class NumberKind : std::uint8_t { params, grads };

struct NumbersDifference {
  std::size_t at = 0;  // index of the record
  NumberKind kind = NumberKind::params;
};

const NumbersDigest& digest_of(const NumbersFile& file) {
  return file.story->numbers;
}

bool is_comparable(const NumbersStep& a, const NumbersStep& b) {
  return a.optimizer == b.optimizer && a.step == b.step && a.is_after_step == b.is_after_step;
}

std::optional<NumbersDifference> first_other_step(const NumbersDigest& a, const NumbersDigest& b) {
  const std::size_t count = std::min(a.steps.size(), b.steps.size());
  for (std::size_t at = 0; at < count; ++at) {
    if (!is_comparable(a.steps[at], b.steps[at])) return std::nullopt;
    if (a.steps[at].params != b.steps[at].params) return NumbersDifference{at, NumberKind::params};
    if (a.steps[at].grads != b.steps[at].grads) return NumbersDifference{at, NumberKind::grads};
  }
  return std::nullopt;
}

// The record that `steps[at]` of a digest was made of.
std::optional<NumbersRecord> read_record(const std::string& path, std::size_t at) {
  NameTable names;
  auto reader = TraceReader::open(path, names);
  if (!reader) return std::nullopt;
  for (std::size_t seen = 0;;) {
    const auto record = reader->next();
    if (!record || *record == nullptr) return std::nullopt;
    const auto* numbers = std::get_if<NumbersRecord>(&(*record)->body);
    if (numbers != nullptr && seen++ == at) return *numbers;
  }
}

std::map<std::string, std::string> hashes_of(const NumbersRecord& record, NumberKind kind,
                                             const TraceStory& story) {
  const auto& hashes = kind == NumberKind::grads ? record.grad_hashes : record.param_hashes;
  std::map<std::string, std::string> found;
  for (std::size_t at = 0; at < record.params.size() && at < hashes.size(); ++at)
    if (is_replicated(record.params[at], story.facts, story.stage, kind == NumberKind::grads))
      found[record.params[at]] = hashes[at].value_or("none");
  return found;
}

std::vector<std::string> differing_params(const NumbersFile& a, const NumbersFile& b,
                                          const NumbersDifference& difference) {
  const auto one = read_record(a.path, difference.at);
  const auto other = read_record(b.path, difference.at);
  std::vector<std::string> params;
  if (!one || !other) return params;
  const auto hashes = hashes_of(*one, difference.kind, *a.story);
  for (const auto& [param, hash] : hashes_of(*other, difference.kind, *b.story)) {
    const auto known = hashes.find(param);
    if (known == hashes.end() || known->second != hash) params.push_back(param);
  }
  return params;
}

Diagnosis told(const NumbersFile& first, const NumbersFile& file,
               const NumbersDifference& difference) {
  const NumbersStep& step = digest_of(first).steps[difference.at];
  const std::vector<std::string> params = differing_params(first, file, difference);
  const bool is_grads = difference.kind == NumberKind::grads;
  const std::string when =
      fmt::format("{} step {}", step.is_after_step ? "after" : "before", step.step);
  Diagnosis found{.kind = is_grads ? "numbers.gradients_not_reduced" : "numbers.replicas_differ",
                  .ranks = {first.story->rank, file.story->rank},
                  .files = {first.path, file.path},
                  .parameter = params.size() == 1 ? params.front() : std::string()};
  const std::string_view since =
      difference.at == 0 ? ", from the first record on" : "; up to there they are equal";
  found.what = fmt::format("{} the {} of {} differ bit for bit on ranks {} and {}{}", when,
                           is_grads ? "gradients" : "values",
                           params.empty() ? std::string("the replicas") : listed(params),
                           first.story->rank, file.story->rank, since);
  found.rule = is_grads ? "data parallelism: the gradient that a step uses is the same on every "
                          "replica"
                        : "data parallelism: replicas begin equal and stay equal";
  found.look_at =
      is_grads
          ? "what changes gradients on one rank after or in place of the reduction: clipping "
            "by a local norm, hooks, a backward past the wrapper"
          : "what ranks do differently: seeds at the start, a step or a load on one rank only, "
            "buffers, an optimizer state that differs";
  found.order.push_back(
      {.rank = first.story->rank, .lc = 0, .text = "the numbers agree up to here"});
  found.order.push_back({.rank = file.story->rank, .lc = 0, .text = found.what, .is_bad = true});
  return found;
}

bool is_same_norm(double a, double b) {
  return a > 0 && std::abs(a - b) <= kSameNorm * a;
}

// Shards have different norms, unless each rank has scaled its own to the limit.
std::optional<Diagnosis> local_clipping(const std::vector<NumbersFile>& files) {
  const NumbersDigest& first = digest_of(files.front());
  std::size_t clipped = 0;
  double limit = 0;
  for (std::size_t at = 0; at < first.steps.size(); ++at) {
    const NumbersStep& step = first.steps[at];
    if (step.is_after_step || step.grad_norm == 0) continue;
    bool is_other_shard = false;
    for (const NumbersFile& file : files) {
      const std::vector<NumbersStep>& steps = digest_of(file).steps;
      if (at >= steps.size() || !is_comparable(step, steps[at])) return std::nullopt;
      if (!is_same_norm(step.grad_norm, steps[at].grad_norm)) return std::nullopt;
      is_other_shard = is_other_shard || steps[at].all_grads != step.all_grads;
    }
    if (!is_other_shard || (limit > 0 && !is_same_norm(limit, step.grad_norm))) return std::nullopt;
    limit = step.grad_norm;
    ++clipped;
  }
  if (clipped < kCommonStepsMin) return std::nullopt;
  Diagnosis found{.kind = "numbers.clipped_by_local_norm"};
  for (const NumbersFile& file : files) {
    found.ranks.push_back(file.story->rank);
    found.files.push_back(file.path);
  }
  found.what = fmt::format(
      "in all {} recorded steps the gradient shards of every rank have the same "
      "norm, {:.4g}, although they are different shards: each rank clipped by "
      "the norm of its own part",
      clipped, limit);
  found.rule = "clipping scales the whole gradient by one factor: the norm is that of all shards";
  found.look_at =
      "the norm that is clipped by: use torch.nn.utils.clip_grad_norm_ on the DTensors, "
      "or reduce the squared norms over the ranks";
  found.order.push_back({.rank = found.ranks.front(), .lc = 0, .text = found.what, .is_bad = true});
  return found;
}

bool is_sharded_job(const TraceStory& story) {
  const auto& wrappers = story.facts.wrappers;
  return !wrappers.empty() && std::all_of(wrappers.begin(), wrappers.end(), [](const auto& entry) {
    return entry.second.kind == "fsdp2" && entry.second.size > 1;
  });
}

// Ranks that hold the same replica: those of the group of the first model's wrapper.
std::vector<std::int32_t> replica_ranks(const TraceStory& story) {
  for (const auto& [model, wrapper] : story.facts.wrappers) {
    const auto group = story.facts.groups.find(wrapper.group);
    if (group != story.facts.groups.end() && group->second.ranks) return *group->second.ranks;
  }
  return {};
}

}  // namespace

std::vector<Diagnosis> compare_numbers(const std::vector<NumbersFile>& files) {
  std::vector<Diagnosis> all;
  if (files.size() < 2) return all;
  if (is_sharded_job(*files.front().story)) {
    if (auto found = local_clipping(files)) all.push_back(std::move(*found));
    return all;
  }
  std::map<std::vector<std::int32_t>, const NumbersFile*> firsts;  // by replica group
  for (const NumbersFile& file : files) {
    const auto [first, is_first] = firsts.try_emplace(replica_ranks(*file.story), &file);
    if (is_first) continue;
    const auto difference = first_other_step(digest_of(*first->second), digest_of(file));
    if (difference) all.push_back(told(*first->second, file, *difference));
  }
  return all;
}

}  // namespace zeroproof
