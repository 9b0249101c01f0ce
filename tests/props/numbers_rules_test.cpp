// Hashes and norms of parameters and gradients: of one rank, and of ranks that hold replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/props/job_text.h"

namespace zeroproof {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string numbers(int step, std::string_view when, std::string_view grads,
                    std::string_view params, std::string_view norm = "1.0",
                    std::string_view bad = "") {
  return fmt::format(
      "{{\"rec\":\"numbers\",\"step\":{},\"when\":\"{}\",\"optimizer\":0,\"params\":[\"a.weight\"],"
      "\"grad_hash\":[{}],\"param_hash\":[{}],\"grad_norm\":[{}],\"param_norm\":[1.0],\"bad\":[{}]}"
      "}",
      step, when, grads, params, norm, bad);
}

std::vector<Diagnosis> numbers_of_ranks(std::string_view gradient, std::string_view value) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < 2; ++rank) {
    Job job(rank);
    job.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
    job.model().ddp().optimizer(kAll);
    for (int step = 0; step < 2; ++step) {
      const bool is_odd = rank == 1 && step == 1;
      job.forward("ddp").backward(true);
      job.record(numbers(step, "before_step", is_odd ? gradient : "\"00000000000000aa\"",
                         fmt::format("\"000000000000000{}\"", step)));
      job.step();
      job.record(
          numbers(step, "after_step", "null",
                  is_odd ? std::string(value) : fmt::format("\"000000000000000{}\"", step + 1)));
      job.zero_grad();
    }
    texts.push_back(job.newer());
  }
  return diagnosis_of_texts(texts);
}

TEST(Numbers, Replicas_are_compared_bit_for_bit) {
  const std::string same = "\"00000000000000aa\"";
  const std::string value = "\"0000000000000002\"";
  EXPECT_THAT(numbers_of_ranks(same, value), IsEmpty());
  const auto gradients = numbers_of_ranks("\"00000000000000ab\"", value);
  ASSERT_THAT(kinds_of(gradients), ElementsAre("numbers.gradients_not_reduced"));
  EXPECT_EQ("a.weight", gradients[0].parameter);
  EXPECT_THAT(gradients[0].what, HasSubstr("before step 1"));
  const auto values = numbers_of_ranks(same, "\"0000000000000003\"");
  ASSERT_THAT(kinds_of(values), ElementsAre("numbers.replicas_differ"));
  EXPECT_THAT(values[0].what, HasSubstr("after step 1"));
}

// Without a wrapper, all-reduces of gradients by name show that ranks hold replicas; a job that
// averages parameters now and then lets them differ.
TEST(Numbers, Replicas_of_a_job_that_reduces_by_hand_are_compared) {
  const auto kinds = [](bool reduces, std::string_view value_of_rank_1) {
    std::vector<std::string> texts;
    for (int rank = 0; rank < 2; ++rank) {
      Job job(rank);
      job.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
      job.model().optimizer(R"("a.weight")");
      for (int step = 0; step < 2; ++step) {
        job.begin(step + 1).accumulate(step + 1, "a.weight").end(step + 1);
        if (reduces) job.collective(step, "all_reduce", 64, "a.weight");
        job.record(numbers(step, "before_step", "\"00000000000000aa\"",
                           rank == 0 ? std::string_view("\"0000000000000001\"") : value_of_rank_1));
        job.step(1);
      }
      texts.push_back(job.newer());
    }
    return kinds_of(diagnosis_of_texts(texts));
  };
  const std::string_view same = "\"0000000000000001\"";
  const std::string_view other = "\"0000000000000002\"";
  EXPECT_THAT(kinds(true, same), Not(Contains("numbers.replicas_differ")));
  EXPECT_THAT(kinds(true, other), Contains("numbers.replicas_differ"));
  EXPECT_THAT(kinds(false, other), Not(Contains("numbers.replicas_differ")));
}

TEST(Numbers, A_parameter_that_does_not_move_and_an_overflow_are_named) {
  const auto kinds = [](bool moves, std::string_view norm, bool is_bad_after) {
    Job job;
    job.model().optimizer(kAll);
    for (int step = 0; step < 3; ++step) {
      const std::string hash = fmt::format("\"000000000000000{}\"", moves ? step : 0);
      job.backward(false);
      job.record(numbers(step, "before_step", "\"00000000000000aa\"", hash, norm,
                         norm == "null" ? "\"a.weight\"" : ""));
      job.step();
      if (is_bad_after)
        job.record(
            numbers(step, "after_step", "null", "\"00000000000000ff\"", "null", "\"a.weight\""));
      job.zero_grad();
    }
    return kinds_of(diagnosis(job));
  };
  EXPECT_THAT(kinds(true, "1.0", false), IsEmpty());
  EXPECT_THAT(kinds(false, "0.0", false), IsEmpty());
  EXPECT_THAT(kinds(false, "1.0", false), ElementsAre("numbers.parameter_still"));
  EXPECT_THAT(kinds(true, "null", false), ElementsAre("numbers.gradient_not_finite"));
  EXPECT_THAT(kinds(true, "null", true), Contains("numbers.parameter_not_finite"));
}

TEST(Numbers, Shards_that_are_clipped_by_their_own_norm_are_named) {
  const auto kinds = [](std::string_view norm_of_rank_1) {
    std::vector<std::string> texts;
    for (int rank = 0; rank < 2; ++rank) {
      Job job(rank);
      job.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
      job.model();
      job.record(R"({"rec":"wrapper","model":0,"kind":"fsdp2","class":"FSDPNet","understood":true,)"
                 R"("group":"world","size":2})");
      for (int step = 0; step < 2; ++step) {
        job.record(numbers(step, "before_step", fmt::format("\"00000000000000a{}\"", rank),
                           fmt::format("\"000000000000000{}\"", step),
                           rank == 0 ? std::string_view("0.1") : norm_of_rank_1));
        job.step();
      }
      texts.push_back(job.newer());
    }
    return kinds_of(diagnosis_of_texts(texts));
  };
  EXPECT_THAT(kinds("0.1"), ElementsAre("numbers.clipped_by_local_norm"));
  EXPECT_THAT(kinds("0.2"), Not(Contains("numbers.clipped_by_local_norm")));
}

}  // namespace
}  // namespace zeroproof
