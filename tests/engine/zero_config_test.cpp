// ds_config.json: every row of ds_configs.json, every key of the table, and any bytes at all.
#include "zeroproof/engine/zero_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/config/config_keys.h"
#include "engine/config/ds_config.h"
#include "tests/fuzz/ds_config_input.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;  // ignored keys are listed in the document's order

std::string file_text(const std::string& path) {
  std::ifstream file(ZP_SOURCE_DIR "/" + path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

const OrderedJson& rows() {
  static const OrderedJson kConfigRows =
      OrderedJson::parse(file_text("tests/engine/ds_configs.json")).at("rows");
  return kConfigRows;
}

std::string text_of(const OrderedJson& row) {
  return row.contains("text") ? row["text"].get<std::string>() : row["config"].dump();
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\n  lacks: " << part;
}

// The object in which a key of the table lies, with this key alone.
OrderedJson document_with(const ConfigKey& key, const OrderedJson& value) {
  std::string section(key.section);
  OrderedJson document = OrderedJson::object();
  if (section.starts_with("/optimizer")) document["optimizer"]["type"] = "Adam";
  if (section.ends_with(" (sgd)")) document["optimizer"]["type"] = "SGD";
  if (key.name == "allgather_size") document["zero_optimization"] = true;  // else it is not read
  section = section.substr(0, section.find(" ("));
  document[OrderedJson::json_pointer(section)][std::string(key.name)] = value;
  return document;
}

std::string pointer_of(const ConfigKey& key) {
  return fmt::format("{}/{}", key.section.substr(0, key.section.find(" (")), key.name);
}

Result<ParsedConfig> parse(const OrderedJson& document) {
  return parse_ds_config(document.dump(), "in");
}

// "kind pointer text" each; those of "auto" only where the row lists some.
std::vector<std::string> noted(const std::vector<ConfigNote>& notes, bool has_auto) {
  std::vector<std::string> lines;
  for (const ConfigNote& note : notes)
    if (has_auto || note.kind != ConfigNoteKind::automatic)
      lines.push_back(
          fmt::format("{} {} {}", config_note_kind_name(note.kind), note.pointer, note.text));
  return lines;
}

TEST(ZeroConfig, Notes_what_each_row_says) {
  for (const OrderedJson& row : rows()) {
    SCOPED_TRACE(row.at("name").get<std::string>());
    const auto document = read_ds_config(text_of(row), "ds.json", UnknownKeys::note);
    if (!document) continue;
    const auto notes = row.value("notes", std::vector<std::string>());
    if (row.contains("strict")) {
      const auto strict = read_ds_config(text_of(row), "ds.json", UnknownKeys::refuse);
      ASSERT_FALSE(strict);
      expect_part(strict.error().text, row["strict"]);
    } else {
      EXPECT_EQ(noted(document->notes, !notes.empty()), notes);
    }
  }
}

TEST(ZeroConfig, Judges_each_document_as_its_row_says) {
  for (const OrderedJson& row : rows()) {
    SCOPED_TRACE(row.at("name").get<std::string>());
    const auto parsed = parse_ds_config(text_of(row), "ds.json");
    if (row.contains("error")) {
      ASSERT_FALSE(parsed);
      EXPECT_TRUE(parsed.error().text.starts_with("ds.json:")) << parsed.error().text;
      expect_part(parsed.error().text, row["error"]);
      continue;
    }
    ASSERT_TRUE(parsed) << parsed.error().text;
    const auto ignored = row.value("ignored", std::vector<std::string>());
    EXPECT_EQ(parsed->ignored, ignored);
    const auto valid = validate(parsed->config);
    const std::string refused = row.value("refused", "");
    EXPECT_EQ(valid.has_value(), refused.empty()) << (valid ? refused : valid.error().text);
    if (!valid && !refused.empty()) expect_part(valid.error().text, refused);
  }
}

TEST(ZeroConfig, Says_everything_in_one_line) {
  for (const OrderedJson& row : rows()) {
    const auto parsed = parse_ds_config(text_of(row), "ds.json");
    const auto valid = parsed ? validate(parsed->config) : Result<void>();
    const std::string text = !parsed ? parsed.error().text : !valid ? valid.error().text : "";
    EXPECT_EQ(text.find_first_of("\n\t\r"), std::string::npos) << text;
    EXPECT_LT(text.size(), 2000U);
  }
}

TEST(ZeroConfig, Ignores_each_key_that_is_not_modelled_and_refuses_what_would_change_gradients) {
  for (const ConfigKey& key : config_keys()) {
    SCOPED_TRACE(pointer_of(key));
    if (key.use != KeyUse::ignored && key.use != KeyUse::refused) continue;
    const auto off = parse(document_with(key, false));
    ASSERT_TRUE(off) << off.error().text;
    EXPECT_EQ(off->ignored, std::vector{pointer_of(key)});
    const auto on = parse(document_with(key, true));
    EXPECT_EQ(on.has_value(), key.use == KeyUse::ignored);
    if (!on)
      expect_part(on.error().text, fmt::format("in: {}: is true; {}", pointer_of(key), key.note));
  }
}

TEST(ZeroConfig, Refuses_each_removed_key_whatever_its_value) {
  for (const ConfigKey& key : config_keys()) {
    SCOPED_TRACE(pointer_of(key));
    if (key.use != KeyUse::removed) continue;
    for (const bool value : {false, true}) {
      const auto parsed = parse(document_with(key, value));
      ASSERT_FALSE(parsed);
      expect_part(parsed.error().text, fmt::format("in: {}: {}; DeepSpeed 0.19.8 has removed this",
                                                   pointer_of(key), key.note));
    }
  }
}

TEST(ZeroConfig, Names_the_nearest_key_for_each_that_is_misspelled) {
  for (const ConfigKey& key : config_keys()) {
    SCOPED_TRACE(pointer_of(key));
    OrderedJson document = document_with(key, true);
    const OrderedJson::json_pointer at(pointer_of(key));
    document[at.parent_pointer()].erase(std::string(key.name));
    document[at.parent_pointer()][fmt::format("{}_", key.name)] = true;
    const auto parsed = read_ds_config(document.dump(), "in", UnknownKeys::refuse);
    ASSERT_FALSE(parsed);
    expect_part(parsed.error().text,
                fmt::format("{}_: unknown key; did you mean '{}'?", pointer_of(key), key.name));
  }
}

// A value that no key takes, so a key of the table that is never read is found out.
TEST(ZeroConfig, Reads_each_modelled_key) {
  for (const ConfigKey& key : config_keys()) {
    SCOPED_TRACE(pointer_of(key));
    if (key.use != KeyUse::modelled) continue;
    const bool is_object = key.name == "scheduler";  // without a type there is none
    const auto parsed =
        parse(document_with(key, is_object ? OrderedJson("no") : OrderedJson{{"no", "value"}}));
    ASSERT_FALSE(parsed);
    expect_part(parsed.error().text, "in: " + pointer_of(key) + ": ");
  }
}

// A row has keys of one use and note.
TEST(ZeroConfig, Is_documented_key_by_key) {
  std::istringstream document(file_text("docs/reference/config.md"));
  std::set<std::string> rows;
  for (std::string line; std::getline(document, line);) {
    const std::size_t use = line.find("` | ");
    if (!line.starts_with("| `/") || use == std::string::npos) continue;
    std::istringstream keys(line.substr(2, use - 1));
    for (std::string key; std::getline(keys, key, ',');) {
      key.erase(0, key.find('`'));
      EXPECT_TRUE(rows.insert(key + line.substr(use + 1)).second) << key;
    }
  }
  for (const ConfigKey& key : config_keys()) {
    const std::string row =
        fmt::format("`{}/{}` | {} | {} |", key.section, key.name, key_use_name(key.use), key.note);
    EXPECT_EQ(1U, rows.erase(row)) << row;
  }
  for (const std::string& row : rows) ADD_FAILURE() << "no key has the row " << row;
}

// Each field set to what is not its default, under its own name.
TEST(ZeroConfig, Takes_each_value_from_its_key) {
  const auto parsed = parse_ds_config(file_text("tests/engine/ds_config_full.json"), "full");
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_TRUE(parsed->ignored.empty());
  const ZeroConfig& config = parsed->config;
  const std::int64_t numbers[] = {config.stage,
                                  config.reduce_bucket_size,
                                  config.allgather_bucket_size,
                                  config.sub_group_size,
                                  config.stage3_prefetch_bucket_size,
                                  config.stage3_param_persistence_threshold,
                                  config.stage3_model_persistence_threshold,
                                  config.stage3_max_live_parameters,
                                  config.stage3_max_reuse_distance,
                                  config.stage3_module_granularity_threshold,
                                  config.train_micro_batch_size_per_gpu,
                                  config.gradient_accumulation_steps,
                                  config.fp16.initial_scale_power,
                                  config.fp16.loss_scale_window,
                                  config.fp16.hysteresis};
  EXPECT_EQ(std::vector(std::begin(numbers), std::end(numbers)),
            (std::vector<std::int64_t>{3, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 4, 23, 24}));
  const bool turned_on[] = {config.enable_sanity_checks,
                            config.prescale_gradients,
                            config.fp16.enabled,
                            config.fp16.consecutive_hysteresis,
                            config.fp16.master_weights_and_grads,
                            config.bf16.enabled,
                            config.bf16.master_weights_and_grads,
                            config.bf16.optimizer_states,
                            config.torch_autocast.enabled,
                            config.optimizer.is_torch_class};
  for (std::size_t at = 0; at < std::size(turned_on); ++at) EXPECT_TRUE(turned_on[at]) << at;
  const bool turned_off[] = {config.contiguous_gradients,
                             config.reduce_scatter,
                             config.use_multi_rank_bucket_allreduce,
                             config.has_overlap_comm(),
                             config.ignore_unused_parameters,
                             config.zero_force_ds_cpu_optimizer,
                             config.memory_efficient_linear,
                             config.managed_gradient_accumulation,
                             config.bf16.check_grad_overflow};
  for (std::size_t at = 0; at < std::size(turned_off); ++at) EXPECT_FALSE(turned_off[at]) << at;
  EXPECT_EQ(config.offload_optimizer, OffloadDevice::cpu);
  EXPECT_EQ(config.offload_param, OffloadDevice::cpu);
  EXPECT_EQ(config.leaf_module.classes, std::vector<std::string>{"Expert"});
  EXPECT_EQ(config.leaf_module.names, (std::vector<std::string>{"a.b", "c"}));
  EXPECT_EQ(config.leaf_module.name_suffixes, std::vector<std::string>{"mlp"});
  EXPECT_EQ(config.gradient_clipping, 0.25);
  EXPECT_EQ(config.gradient_predivide_factor, 4.0);
  EXPECT_EQ(config.gradient_allreduce_op, GradientAllreduceOp::sum);
  EXPECT_EQ(config.communication_data_type, DType::float16);
  EXPECT_EQ(config.grad_accum_dtype, DType::float32);
  EXPECT_EQ(config.param_dtype, DType::bfloat16);
  EXPECT_EQ(config.fp16.loss_scale, 128.0);
  EXPECT_EQ(config.fp16.min_loss_scale, 0.5);
  EXPECT_EQ(config.torch_autocast.dtype, DType::float16);
  EXPECT_EQ(config.torch_autocast.lower_precision_safe_modules,
            std::vector<std::string>{"torch.nn.Linear"});
}

optim::AdamOptions adam_of(const char* type, const OrderedJson& params) {
  const auto parsed = parse({{"optimizer", {{"type", type}, {"params", params}}}});
  return parsed ? parsed->config.optimizer.adam : optim::AdamOptions{.lr = -1.0};
}

TEST(ZeroConfig, Makes_the_Adam_that_upstream_makes) {
  EXPECT_TRUE(adam_of("adam", OrderedJson::object()).is_decay_decoupled);
  EXPECT_FALSE(adam_of("Adam", {{"adam_w_mode", false}}).is_decay_decoupled);
  EXPECT_TRUE(adam_of("AdamW", {{"adam_w_mode", false}}).is_decay_decoupled);
  EXPECT_EQ(adam_of("AdamW", OrderedJson::object()).weight_decay, 0.0);
  EXPECT_EQ(adam_of("AdamW", {{"torch_adam", true}}).weight_decay, 0.01);
  EXPECT_EQ(adam_of("Adam", {{"torch_adam", true}, {"adam_w_mode", false}}).weight_decay, 0.0);
  const auto adam = adam_of(
      "Adam",
      {{"lr", 0.5}, {"betas", {0.25, 0.75}}, {"eps", 2}, {"weight_decay", 3}, {"maximize", true}});
  EXPECT_EQ((std::vector{adam.lr, adam.beta1, adam.beta2, adam.eps, adam.weight_decay}),
            (std::vector{0.5, 0.25, 0.75, 2.0, 3.0}));
  EXPECT_TRUE(adam.is_maximizing);
}

TEST(ZeroConfig, Makes_the_SGD_that_is_asked_for) {
  const auto parsed = parse(
      {{"optimizer",
        {{"type", "SGD"},
         {"params", {{"lr", 0.5}, {"momentum", 0.25}, {"nesterov", true}, {"weight_decay", 2}}}}}});
  ASSERT_TRUE(parsed) << parsed.error().text;
  const optim::SgdOptions& sgd = parsed->config.optimizer.sgd;
  EXPECT_EQ(parsed->config.optimizer.type, OptimizerType::sgd);
  EXPECT_EQ((std::vector{sgd.lr, sgd.momentum, sgd.weight_decay}), (std::vector{0.5, 0.25, 2.0}));
  EXPECT_TRUE(sgd.is_nesterov);
}

TEST(ZeroConfig, Overlaps_by_default_at_stage_3_alone) {
  for (int stage = 0; stage <= 3; ++stage) {
    const auto parsed = parse({{"zero_optimization", {{"stage", stage}}}});
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->config.has_overlap_comm(), stage == 3);
  }
}

TEST(ZeroConfig, Takes_older_names_and_short_ones) {
  const auto older = parse({{"zero_optimization",
                             {{"stage", 3},
                              {"cpu_offload", true},
                              {"cpu_offload_param", true},
                              {"max_live_parameters", 7}}},
                            {"bfloat16", {{"enabled", true}}}});
  ASSERT_TRUE(older) << older.error().text;
  EXPECT_TRUE(older->config.is_offloaded());
  EXPECT_EQ(older->config.offload_param, OffloadDevice::cpu);
  EXPECT_EQ(older->config.stage3_max_live_parameters, 7);
  EXPECT_TRUE(older->config.bf16.enabled);
  const auto flag = parse({{"zero_optimization", true}, {"allgather_size", 10}});
  ASSERT_TRUE(flag);
  EXPECT_EQ(flag->config.stage, 1);
  EXPECT_EQ(flag->config.allgather_bucket_size, 10);
}

struct BatchCase {
  OrderedJson given;
  std::int64_t ranks, micro, steps;  // micro 0: an error
};

TEST(ZeroConfig, Finds_the_batch_sizes_that_are_missing) {
  const char* const train = "train_batch_size";
  const char* const micro = "train_micro_batch_size_per_gpu";
  const char* const steps = "gradient_accumulation_steps";
  const std::vector<BatchCase> cases = {
      {OrderedJson::object(), 4, 1, 1},
      {{{micro, 3}}, 4, 3, 1},
      {{{steps, 3}}, 4, 1, 3},
      {{{train, 24}}, 4, 6, 1},
      {{{train, 24}, {micro, 3}}, 4, 3, 2},
      {{{train, 24}, {steps, 3}}, 4, 2, 3},
      {{{train, 24}, {micro, 2}, {steps, 3}}, 4, 2, 3},
      {{{train, 24}, {micro, 2}, {steps, 2}}, 4, 0, 0},
      {{{train, 25}}, 4, 0, 0},
      {{{train, 3}}, 4, 0, 0},
      {{{train, 24}, {micro, 5}}, 4, 0, 0},
      {{{train, 1}, {micro, INT64_MAX}, {steps, INT64_MAX}}, 4, 0, 0},
  };
  for (const BatchCase& expected : cases) {
    SCOPED_TRACE(expected.given.dump());
    const auto config = with_batch_sizes(*parse(expected.given), expected.ranks);
    ASSERT_EQ(config.has_value(), expected.micro != 0);
    if (!config) continue;
    EXPECT_EQ(config->train_micro_batch_size_per_gpu, expected.micro);
    EXPECT_EQ(config->gradient_accumulation_steps, expected.steps);
  }
}

TEST(ZeroConfig, Survives_deep_nesting) {
  for (const char* bracket : {"[", "{\"wandb\":"}) {
    std::string text = "{\"wandb\":";
    for (int level = 0; level < 100'000; ++level) text += bracket;
    const auto parsed = parse_ds_config(text, "deep");
    ASSERT_FALSE(parsed);
    expect_part(parsed.error().text, "nested deeper than 64 levels");
    EXPECT_LT(parsed.error().text.size(), 200U);
  }
}

// A byte replaced, removed or doubled somewhere: an answer, and one line.
RC_GTEST_PROP(ZeroConfig, Answers_any_damaged_document, ()) {
  std::string text = text_of(*rc::gen::elementOf(rows().get<std::vector<OrderedJson>>()));
  for (const auto& [place, byte] : *rc::gen::container<std::vector<std::pair<std::size_t, char>>>(
           3, rc::gen::pair(rc::gen::arbitrary<std::size_t>(), rc::gen::arbitrary<char>()))) {
    if (text.empty()) break;
    const std::size_t at = place % text.size();
    if (place % 3 == 0) text[at] = byte;
    if (place % 3 == 1) text.erase(at, 1);
    if (place % 3 == 2) text.insert(at, 1, text[at]);
  }
  read_any_config(text);
}

}  // namespace
}  // namespace zeroproof
