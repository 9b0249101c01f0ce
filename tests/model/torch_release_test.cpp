#include "zeroproof/internal/model/torch_release.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/accumulate_grad.h"
#include "model/cpu_ops.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

TEST(TorchRelease, Is_read_from_what_torch_says_of_itself) {
  struct Row {
    const char* text;
    bool has_unsafe_view;
  };
  constexpr Row kReleases[] = {{"2.11.0", false},      {"2.14.1", false},       {"2.15.0", true},
                               {"2.15.0+cu132", true}, {"2.11.0+cu130", false}, {"3.0.0", true},
                               {"2.15", true}};
  for (const Row& row : kReleases) {
    const auto release = TorchRelease::parse(row.text);
    ASSERT_TRUE(release) << row.text;
    EXPECT_EQ(row.has_unsafe_view, release->has(TorchChange::linear_unflattens_by_unsafe_view))
        << row.text;
  }
}

TEST(TorchRelease, Names_what_is_no_release) {
  for (const char* text : {"", "two", "2", "2.", ".15", "2.15x"}) {
    const auto release = TorchRelease::parse(text);
    ASSERT_FALSE(release) << text;
    EXPECT_NE(std::string::npos, release.error().text.find(text));
    EXPECT_NE(std::string::npos, release.error().text.find("2.15.0"));
  }
}

TEST(TorchRelease, Has_every_change_once_in_the_order_of_releases) {
  const auto changes = torch_changes();
  const auto release_of = [](const TorchChangeRow& row) { return std::pair(row.major, row.minor); };
  EXPECT_TRUE(std::ranges::is_sorted(changes, {}, release_of));
  for (const TorchChangeRow& row : changes) {
    EXPECT_EQ(1, std::ranges::count(changes, row.change, &TorchChangeRow::change));
    EXPECT_TRUE(TorchRelease().has(row.change));
  }
}

// Before 2.12 a node of its own kept the inputs of a checkpoint, and took a number (rule N2).
TEST(TorchRelease, Says_whether_a_checkpoint_takes_a_sequence_number) {
  for (const auto& [text, numbers] : {std::pair("2.11.0", 2U), std::pair("2.12.0", 1U)}) {
    const CpuOps ops;
    Autograd ag(ops);
    ag.global().release = *TorchRelease::parse(text);
    const Tensor x = Tensor::of({1.0, 2.0}, {2});
    x.set_requires_grad(true);
    const std::uint64_t before = ag.next_sequence_nr();
    const auto body = [&](const TensorList& inputs) { return TensorList{sin(ag, inputs[0])}; };
    const Tensor y = checkpoint(ag, CheckpointKind::non_reentrant, body, {x})[0];
    EXPECT_EQ(numbers, ag.next_sequence_nr() - before) << text;
    ag.backward(sum(ag, y));
    EXPECT_TRUE(x.grad().is_defined());
  }
}

}  // namespace
}  // namespace zeroproof
