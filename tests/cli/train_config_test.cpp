// train --ds-config: each configuration of tests/data/configs beside DeepSpeed's own answer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/command_line.h"
#include "tests/read_file.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;

constexpr const char* kFolder = ZP_SOURCE_DIR "/tests/data/configs/";

Json read_json(const std::string& name) {
  return Json::parse(read_file(kFolder + name));
}

CommandResult train(const std::string& path, const std::string& more = "") {
  return zeroproof(
      fmt::format("train --ds-config {} --world-size 2 --check-baseline {}", path, more));
}

CommandResult train_text(const std::string& text, const std::string& more = "") {
  const ScratchFolder scratch;
  write_file(scratch / "ds.json", text);
  return train(scratch / "ds.json", more);
}

std::set<std::string> bundled_configurations() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".json") && name != "deepspeed.json" && name != "verdicts.json")
      names.insert(name);
  }
  return names;
}

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

TEST(TrainConfig, Judges_each_bundled_configuration_as_recorded) {
  const Json verdicts = read_json("verdicts.json");
  for (const auto& [name, verdict] : verdicts.items()) {
    SCOPED_TRACE(name);
    const CommandResult result = train(kFolder + name);
    EXPECT_EQ(verdict.at("exit"), result.exit_code) << result.out << result.err;
    for (const std::string& said : verdict.at("says").get<std::vector<std::string>>())
      EXPECT_NE(std::string::npos, (result.out + result.err).find(said)) << said << result.err;
    const auto is_note = [](const Json& said) {
      return said.get<std::string>().starts_with("config: ");
    };
    const auto notes = std::count_if(verdict["says"].begin(), verdict["says"].end(), is_note);
    std::int64_t printed = 0;
    for (std::size_t at = result.out.find("\nconfig: "); at != std::string::npos;
         at = result.out.find("\nconfig: ", at + 1))
      ++printed;
    EXPECT_EQ(notes, printed) << result.out;
  }
}

TEST(TrainConfig, Has_a_verdict_and_an_answer_of_DeepSpeed_for_each_file) {
  const std::set<std::string> names = bundled_configurations();
  EXPECT_LE(40U, names.size());
  EXPECT_EQ(names, keys_of(read_json("verdicts.json")));
  EXPECT_EQ(names, keys_of(read_json("deepspeed.json")));
}

TEST(TrainConfig, Gives_a_reason_for_each_difference_from_DeepSpeed_and_for_these_alone) {
  const Json answers = read_json("deepspeed.json");
  const Json verdicts = read_json("verdicts.json");
  for (const auto& [name, verdict] : verdicts.items()) {
    const bool is_same = answers.at(name).at("runs") == (verdict.at("exit") == 0);
    EXPECT_EQ(is_same, !verdict.contains("why")) << name;
  }
}

TEST(TrainConfig, Reports_notes_in_JSON) {
  const CommandResult result =
      train_text(R"({"train_micro_batch_size_per_gpu": 3, "gradient_clipping": "auto", "_a": 1,
                     "gradient_cliping": 2, "wall_clock_breakdown": true})",
                 "--json");
  ASSERT_EQ(0, result.exit_code) << result.err;
  const Json config = Json::parse(result.out).at("config");
  EXPECT_EQ(config.at("ignored"), Json::parse(R"(["/wall_clock_breakdown"])"));
  EXPECT_EQ(config.at("notes"), Json::parse(R"([
      {"kind": "unknown", "key": "/_a", "text": ""},
      {"kind": "unknown", "key": "/gradient_cliping", "text": "did you mean 'gradient_clipping'?"},
      {"kind": "automatic", "key": "/gradient_clipping", "text": "1"},
      {"kind": "batch_size", "key": "/train_batch_size", "text": "6"},
      {"kind": "batch_size", "key": "/gradient_accumulation_steps", "text": "1"}])"));
}

TEST(TrainConfig, Refuses_an_unknown_key_only_when_asked_to) {
  const std::string text = R"({"train_micro_batch_size_per_gpu": 1, "_note": "mine"})";
  EXPECT_EQ(0, train_text(text).exit_code);
  const CommandResult strict = train_text(text, "--strict-config");
  EXPECT_EQ(2, strict.exit_code);
  EXPECT_NE(std::string::npos, strict.err.find("/_note: unknown key")) << strict.err;
  EXPECT_LT(strict.err.size(), 300U);
}

TEST(TrainConfig, Lists_a_few_of_many_unknown_keys) {
  std::string text = R"({"train_micro_batch_size_per_gpu": 1)";
  for (int i = 0; i < 100; ++i) text += fmt::format(R"(, "private-{}": {})", i, i);
  const CommandResult result = train_text(text + "}");
  ASSERT_EQ(0, result.exit_code) << result.err;
  EXPECT_NE(std::string::npos, result.out.find(" and 88 more\n")) << result.out;
}

// 3, 5 and 6 do not divide a sum exactly; 64 is the most that bf16 holds.
TEST(TrainConfig, Accumulates_as_often_as_the_configuration_says) {
  for (const int steps : {1, 3, 5, 6, 8, 64})
    for (const std::string precision : {"", R"("bf16": {"enabled": true}, )"}) {
      const CommandResult result = train_text(
          fmt::format(
              R"({{{}"train_micro_batch_size_per_gpu": 1, "zero_optimization": {{"stage": 2}},
                      "gradient_accumulation_steps": {}}})",
              precision, steps),
          "--check-properties");
      EXPECT_EQ(0, result.exit_code) << steps << result.out;
      EXPECT_EQ(std::string::npos, result.out.find("replaced")) << result.out;
    }
}

TEST(TrainConfig, Says_what_a_scenario_replaces) {
  const std::string text = R"({"train_micro_batch_size_per_gpu": 1,
      "gradient_accumulation_steps": 8, "zero_optimization": {"stage": 2}})";
  const CommandResult gas2 = train_text(text, "--scenario gas2");
  EXPECT_EQ(0, gas2.exit_code) << gas2.err;
  EXPECT_NE(std::string::npos,
            gas2.out.find("config: /gradient_accumulation_steps is 8 replaced by "
                          "2: of scenario gas2 and the flags\n"))
      << gas2.out;
  const CommandResult precise = train_text(text, "--dtype bf16");
  EXPECT_NE(std::string::npos, precise.out.find("config: /bf16/enabled is false replaced by true"))
      << precise.out;
}

TEST(TrainConfig, Refuses_what_does_not_fit_the_scenario_as_misuse) {
  const CommandResult result = train_text(
      R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1,
          "overlap_comm": true}})",
      "--scenario unmanaged");
  EXPECT_EQ(2, result.exit_code);
  EXPECT_NE(std::string::npos,
            result.err.find("ds.json: with --scenario unmanaged and the flags: "
                            "unsupported_combination: managed_gradient_accumulation"))
      << result.err;
}

// Rates that differ from step to step, and steps of fp16 that are skipped: the baseline, which
// moves its own rates, has the same weights.
TEST(TrainConfig, Is_equal_under_each_scheduler) {
  constexpr const char* kSchedulers[] = {
      R"({"type": "WarmupLR", "params": {"warmup_min_lr": 1e-3, "warmup_max_lr": 0.1,
          "warmup_num_steps": 4, "warmup_type": "linear"}})",
      R"({"type": "WarmupDecayLR", "params": {"total_num_steps": 9, "warmup_max_lr": 0.05,
          "warmup_num_steps": 3}})",
      R"({"type": "WarmupCosineLR", "params": {"total_num_steps": 9, "warmup_num_steps": 3,
          "warmup_min_ratio": 0.2}})",
      R"({"type": "OneCycle", "params": {"cycle_min_lr": 0.01, "cycle_max_lr": 0.1,
          "cycle_first_step_size": 3, "decay_step_size": 2, "decay_lr_rate": 0.5}})",
      R"({"type": "LRRangeTest", "params": {"lr_range_test_min_lr": 0.01,
          "lr_range_test_step_size": 2, "lr_range_test_step_rate": 1.5}})"};
  for (const char* scheduler : kSchedulers)
    for (int stage = 0; stage <= 3; ++stage) {
      const CommandResult result =
          train_text(fmt::format(R"({{"train_micro_batch_size_per_gpu": 1, "scheduler": {},
                          "fp16": {{"enabled": true, "initial_scale_power": 12}},
                          "optimizer": {{"type": "AdamW", "params": {{"lr": 0.02}}}},
                          "zero_optimization": {{"stage": {}}}}})",
                                 scheduler, stage),
                     "--steps 12");
      EXPECT_EQ(0, result.exit_code) << scheduler << result.out << result.err;
    }
}

// The loss scale of 65536 overflows in the first steps: no step is applied.
TEST(TrainConfig, Is_equal_where_the_first_steps_of_fp16_are_skipped) {
  for (const char* optimizer :
       {R"({"type": "AdamW"})", R"({"type": "SGD", "params": {"momentum": 0.9}})"})
    for (int stage = 0; stage <= 3; ++stage) {
      const CommandResult result = train_text(
          fmt::format(R"({{"train_micro_batch_size_per_gpu": 1, "fp16": {{"enabled": true}},
                          "zero_allow_untested_optimizer": true, "optimizer": {},
                          "zero_optimization": {{"stage": {}}}}})",
                      optimizer, stage),
          "--steps 12");
      EXPECT_EQ(0, result.exit_code) << result.out << result.err;
    }
}

}  // namespace
}  // namespace zeroproof::cli_test
