#include "engine/checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/manifest_json.h"
#include "engine/checkpoint/tensor_parallel.h"
#include "model/check.h"

namespace zeroproof {
namespace {

using nlohmann::json;

constexpr std::string_view kManifestSchema = "zeroproof.checkpoint/1";
constexpr std::string_view kShardsSchema = "zeroproof.checkpoint_shards/1";
constexpr std::string_view kPartSchema = "zeroproof.checkpoint_part/1";
constexpr std::string_view kLatestSchema = "zeroproof.checkpoint_latest/1";
constexpr int kRanksMax = 1 << 16;  // of one kind; more is a mistake

constexpr std::array<std::pair<PartitionKind, std::string_view>, 5> kKinds = {{
    {PartitionKind::inferred, "inferred"},
    {PartitionKind::replicated, "replicated"},
    {PartitionKind::sliced, "sliced"},
    {PartitionKind::vocabulary, "vocabulary"},
    {PartitionKind::unsupported, "unsupported"},
}};

constexpr std::int64_t kNever = -1;  // a step that has not been

int read_size(const json& value) {
  const std::int64_t size = read_number(value);
  if (size < 1 || size > kRanksMax) throw Malformed(value.dump() + " ranks");
  return static_cast<int>(size);
}

json to_json(const PartitionRule& rule) {
  std::string_view kind;
  for (const auto& [value, name] : kKinds) kind = value == rule.kind ? name : kind;
  return {{"kind", kind},
          {"axis", rule.axis},
          {"sub_parameters", rule.sub_parameters},
          {"partition_sizes", rule.partition_sizes},
          {"vocabulary_rows", rule.vocabulary_rows},
          {"experts", rule.experts},
          {"note", escaped_name(rule.note)}};
}

PartitionRule read_rule(const json& value) {
  PartitionRule rule{.axis = read_number(value.at("axis")),
                     .sub_parameters = read_shape(value.at("sub_parameters")),
                     .partition_sizes = read_shape(value.at("partition_sizes")),
                     .vocabulary_rows = read_number(value.at("vocabulary_rows")),
                     .experts = read_number(value.at("experts")),
                     .note = read_name(value.at("note"))};
  bool is_known = false;
  for (const auto& [kind, name] : kKinds) {
    if (value.at("kind") != name) continue;
    rule.kind = kind;
    is_known = true;
  }
  if (!is_known) throw Malformed("the partition kind " + value.at("kind").dump() + " is unknown");
  if (const std::string problem = problem_of(rule); !problem.empty()) throw Malformed(problem);
  return rule;
}

json to_json(const ParameterGroup& group) {
  json names = json::array();
  for (const std::string& name : group.parameters) names.push_back(escaped_name(name));
  json hyper_parameters = json::object();
  for (const auto& [name, value] : group.hyper_parameters) {
    hyper_parameters[escaped_name(name)] = value;
  }
  return {{"parameters", std::move(names)}, {"hyper_parameters", std::move(hyper_parameters)}};
}

ParameterGroup read_group(const json& value) {
  ParameterGroup group;
  for (const json& name : value.at("parameters")) group.parameters.push_back(read_name(name));
  for (const auto& [name, number] : value.at("hyper_parameters").items()) {
    group.hyper_parameters[read_name(name)] = number.get<double>();
  }
  return group;
}

json to_json(const LossScaler::State& state) {
  return {{"scale", state.scale},
          {"iteration", state.iteration},
          {"last_overflow", state.last_overflow},
          {"hysteresis", state.hysteresis},
          {"growth_tracker", state.growth_tracker}};
}

LossScaler::State read_loss_scaler(const json& value) {
  return {.scale = value.at("scale").get<double>(),
          .iteration = read_number(value.at("iteration")),
          .last_overflow = read_number(value.at("last_overflow"), kNever),
          .hysteresis = read_number(value.at("hysteresis"), -kLargestNumber),
          .growth_tracker = read_number(value.at("growth_tracker"))};
}

json to_json(const TrainingCounters& counters) {
  return {{"micro_steps", counters.micro_steps},
          {"global_steps", counters.global_steps},
          {"skipped_steps", counters.skipped_steps},
          {"global_samples", counters.global_samples}};
}

TrainingCounters read_counters(const json& value) {
  return {.micro_steps = read_number(value.at("micro_steps")),
          .global_steps = read_number(value.at("global_steps")),
          .skipped_steps = read_number(value.at("skipped_steps")),
          .global_samples = read_number(value.at("global_samples"))};
}

json to_json(const SchedulerState& state) {
  return {{"type", escaped_name(state.type)}, {"last_batch_iteration", state.last_batch_iteration}};
}

SchedulerState read_scheduler(const json& value) {
  return {.type = read_name(value.at("type")),
          .last_batch_iteration = read_number(value.at("last_batch_iteration"), kNever)};
}

PartManifest read_part(const json& value) {
  PartManifest part;
  for (const json& tensor : value.at("tensors")) {
    part.push_back(
        {read_name(tensor.at("parameter")), read_name(tensor.at("key")), read_file_record(tensor)});
  }
  return part;
}

Manifest read_manifest(const json& value) {
  Manifest manifest{.tag = value.at("tag").get<std::string>(),
                    .tensor_size = read_size(value.at("tensor_parallel_size")),
                    .expert_size = read_size(value.at("expert_parallel_size")),
                    .loss_scaler = read_loss_scaler(value.at("loss_scaler")),
                    .counters = read_counters(value.at("counters"))};
  if (value.contains("scheduler")) manifest.scheduler = read_scheduler(value.at("scheduler"));
  for (const json& part : value.at("parts")) manifest.parts.push_back(read_file_record(part));
  for (const json& group : value.at("groups")) manifest.groups.push_back(read_group(group));
  for (const auto& [name, rule] : value.at("partition_rules").items()) {
    manifest.rules[read_name(name)] = read_rule(rule);
  }
  if (value.contains("data_parallel_size"))
    manifest.data_size = read_size(value.at("data_parallel_size"));
  const std::size_t ranks = static_cast<std::size_t>(manifest.tensor_size) *
                            static_cast<std::size_t>(manifest.expert_size) *
                            static_cast<std::size_t>(std::max(1, manifest.data_size));
  if (manifest.parts.size() != ranks) throw Malformed("its parts are not one a rank");
  return manifest;
}

}  // namespace

FileRecord record_of(std::string_view bytes) {
  return {bytes.size(), checksum_of(bytes)};
}

std::vector<ParallelPlace> places_of(int tensor_size, int expert_size) {
  std::vector<ParallelPlace> places;
  for (int expert = 0; expert < expert_size; ++expert) {
    for (int tensor = 0; tensor < tensor_size; ++tensor) {
      places.push_back({{tensor, tensor_size}, {expert, expert_size}});
    }
  }
  return places;
}

std::vector<std::string> part_files(int tensor_size, int expert_size) {
  std::vector<std::string> names;
  for (const ParallelPlace& place : places_of(tensor_size, expert_size))
    names.push_back(part_file(place));
  return names;
}

std::string part_text(const PartManifest& part) {
  json tensors = json::array();
  for (const StoredTensor& record : part) {
    json entry = to_json(record.file);
    entry["parameter"] = escaped_name(record.parameter);
    entry["key"] = escaped_name(record.key);
    tensors.push_back(std::move(entry));
  }
  return sealed(json{{"schema", kPartSchema}, {"tensors", std::move(tensors)}}.dump());
}

Result<PartManifest> parse_part(std::string_view text, const std::string& path) {
  return parse_sealed(text, path, kPartSchema, read_part);
}

std::string manifest_text(const Manifest& manifest) {
  json parts = json::array();
  for (const FileRecord& part : manifest.parts) parts.push_back(to_json(part));
  json groups = json::array();
  for (const ParameterGroup& group : manifest.groups) groups.push_back(to_json(group));
  json rules = json::object();
  for (const auto& [name, rule] : manifest.rules) rules[escaped_name(name)] = to_json(rule);
  const bool has_shards = manifest.data_size > 0;
  json text{{"schema", has_shards ? kShardsSchema : kManifestSchema},
            {"tag", manifest.tag},
            {"tensor_parallel_size", manifest.tensor_size},
            {"expert_parallel_size", manifest.expert_size},
            {"parts", std::move(parts)},
            {"groups", std::move(groups)},
            {"partition_rules", std::move(rules)},
            {"loss_scaler", to_json(manifest.loss_scaler)},
            {"counters", to_json(manifest.counters)}};
  if (manifest.scheduler) text["scheduler"] = to_json(*manifest.scheduler);
  if (has_shards) text["data_parallel_size"] = manifest.data_size;
  return sealed(text.dump());
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& path) {
  const bool has_shards = text.substr(0, text.find('\n')).find(kShardsSchema) != text.npos;
  auto manifest =
      parse_sealed(text, path, has_shards ? kShardsSchema : kManifestSchema, read_manifest);
  if (manifest && (manifest->data_size > 0) != has_shards)
    return damaged(path, "its schema and its layout differ");
  return manifest;
}

std::string latest_text(std::string_view folder) {
  return sealed(json{{"schema", kLatestSchema}, {"checkpoint", folder}}.dump());
}

Result<std::string> parse_latest(std::string_view text, const std::string& path) {
  return parse_sealed(text, path, kLatestSchema, [](const json& value) {
    auto folder = value.at("checkpoint").get<std::string>();
    if (!checkpoint_name(folder)) throw Malformed("'" + folder + "' is no checkpoint's name");
    return folder;
  });
}

}  // namespace zeroproof
