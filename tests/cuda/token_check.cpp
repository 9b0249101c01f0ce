// Cross entropy and the embedding.

#include <cmath>

#include "engine/runtime/cuda/fused/cross_entropy.h"
#include "engine/runtime/cuda/fused/embedding.h"
#include "tests/cuda/check.h"

namespace zeroproof::check {
namespace {

std::string text(int rows, int columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

struct LossReference {
  std::vector<double> losses, dlogits;
};

LossReference loss_reference(const std::vector<double>& logits,
                             const std::vector<std::int32_t>& targets, double scale) {
  const std::size_t vocab = logits.size() / targets.size();
  LossReference r{{}, std::vector<double>(logits.size())};
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const double* x = logits.data() + row * vocab;
    double max = x[0];
    for (std::size_t i = 1; i < vocab; ++i) max = std::max(max, x[i]);
    double sum = 0.0;
    for (std::size_t i = 0; i < vocab; ++i) sum += std::exp(x[i] - max);
    const auto target = static_cast<std::size_t>(targets[row]);
    r.losses.push_back(max + std::log(sum) - x[target]);
    for (std::size_t i = 0; i < vocab; ++i) {
      r.dlogits[row * vocab + i] = (std::exp(x[i] - max) / sum - (i == target ? 1.0 : 0.0)) * scale;
    }
  }
  return r;
}

void check_loss_shape(Suite& suite, int rows, int vocab, double deviation) {
  Random random(static_cast<std::uint64_t>(rows + vocab));
  const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(vocab);
  const auto logits = random.normals(count, deviation);
  const auto targets = random.ids(static_cast<std::size_t>(rows), vocab);
  constexpr float kFactor = 0.5F;
  const float scale = kFactor / static_cast<float>(rows);
  const LossReference want = loss_reference(widened(logits), targets, static_cast<double>(scale));

  const Buffer<Bf16> d_logits(logits);
  const Buffer<std::int32_t> d_targets(targets);
  const Buffer<float> losses(static_cast<std::size_t>(rows)), mean(1);
  const auto run = [&](bool is_loss_only) {
    ZP_REQUIRE(cuda::cross_entropy(
        {d_logits.data(), d_targets.data(), losses.data(), rows, vocab, scale, is_loss_only},
        nullptr));
  };
  run(true);
  expect(suite, "cross_entropy loss only", text(rows, vocab), d_logits.download() == logits);
  run(false);
  ZP_REQUIRE(cuda::mean_loss({losses.data(), mean.data(), rows, kFactor}, nullptr));
  compare(suite, {"cross_entropy losses", text(rows, vocab), 1e-5}, losses, want.losses);
  compare(suite, {"cross_entropy dlogits", text(rows, vocab), 3e-3}, d_logits, want.dlogits);
  double total = 0.0;
  for (const double loss : want.losses) total += loss;
  compare(suite, {"cross_entropy mean", text(rows, vocab), 1e-5}, mean,
          {total / rows * static_cast<double>(kFactor)});
}

void time_loss(int rows) {
  constexpr int kVocab = 32000;
  const auto count = static_cast<std::size_t>(rows) * kVocab;
  Random random(9);
  Buffer<Bf16> logits(count);
  logits.fill(8);
  const Buffer<std::int32_t> targets(random.ids(static_cast<std::size_t>(rows), kVocab));
  const Buffer<float> losses(static_cast<std::size_t>(rows)), mean(1);
  time({"cross_entropy", text(rows, kVocab), 4.0 * static_cast<double>(count), 0.0, 2}, [&](int) {
    ZP_REQUIRE(cuda::cross_entropy(
        {logits.data(), targets.data(), losses.data(), rows, kVocab, 1.0F, false}, nullptr));
  });
  time({"mean_loss", std::to_string(rows), 4.0 * rows}, [&](int) {
    ZP_REQUIRE(cuda::mean_loss({losses.data(), mean.data(), rows, 1.0F}, nullptr));
  });
}

struct EmbeddingShape {
  int tokens;
  int vocab;
  int width;
  int distinct;  // ids are below it
};

std::string text(const EmbeddingShape& s) {
  return std::to_string(s.tokens) + " of " + std::to_string(s.distinct) + "/" +
         std::to_string(s.vocab) + "x" + std::to_string(s.width);
}

void check_embedding_shape(Suite& suite, const EmbeddingShape& s) {
  Random random(static_cast<std::uint64_t>(s.tokens + s.vocab));
  const auto width = static_cast<std::size_t>(s.width);
  const auto tokens = static_cast<std::size_t>(s.tokens);
  const auto table = random.normals(static_cast<std::size_t>(s.vocab) * width);
  const auto ids = random.ids(tokens, s.distinct);
  const auto dout = random.normals(tokens * width);
  std::vector<double> want(tokens * width);
  std::vector<double> want_grad(table.size());
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t at = static_cast<std::size_t>(ids[t]) * width + i;
      want[t * width + i] = from_bf16(table[at]);
      want_grad[at] += from_bf16(dout[t * width + i]);
    }
  }
  const Buffer<Bf16> d_table(table), d_dout(dout), out(tokens * width);
  Buffer<Bf16> dtable(table.size());
  const Buffer<std::int32_t> d_ids(ids);
  const Buffer<std::int32_t> workspace(
      static_cast<std::size_t>(cuda::embedding_workspace_ints(s.tokens, s.vocab)));
  ZP_REQUIRE(cuda::embedding_forward(
      {d_table.data(), d_ids.data(), out.data(), s.tokens, s.vocab, s.width}, nullptr));
  const auto backward = [&](bool is_accumulating) {
    ZP_REQUIRE(
        cuda::embedding_backward({d_dout.data(), d_ids.data(), dtable.data(), workspace.data(),
                                  s.tokens, s.vocab, s.width, is_accumulating},
                                 nullptr));
  };
  backward(false);
  compare(suite, {"embedding forward", text(s), 0.0}, out, want);
  compare(suite, {"embedding backward", text(s), 3e-3}, dtable, want_grad);
  const auto first = dtable.download();
  dtable.poison();
  backward(false);
  expect(suite, "embedding backward twice", text(s), dtable.download() == first);
  dtable.upload(table);
  backward(true);
  for (std::size_t i = 0; i < table.size(); ++i) want_grad[i] += from_bf16(table[i]);
  compare(suite, {"embedding accumulated", text(s), 3e-3}, dtable, want_grad);
}

void time_embedding(int tokens) {
  constexpr int kVocab = 32000;
  constexpr int kWidth = 1024;
  const std::size_t count = static_cast<std::size_t>(tokens) * kWidth;
  Random random(11);
  Buffer<Bf16> table(std::size_t{kVocab} * kWidth), dout(count);
  table.fill(10);
  dout.fill(12);
  const Buffer<Bf16> out(count);
  const Buffer<std::int32_t> ids(random.ids(static_cast<std::size_t>(tokens), kVocab));
  const Buffer<std::int32_t> workspace(
      static_cast<std::size_t>(cuda::embedding_workspace_ints(tokens, kVocab)));
  const std::string shape = text(tokens, kWidth);
  time({"embedding forward", shape, 4.0 * static_cast<double>(count)}, [&](int) {
    ZP_REQUIRE(cuda::embedding_forward(
        {table.data(), ids.data(), out.data(), tokens, kVocab, kWidth}, nullptr));
  });
  const double bytes = 2.0 * static_cast<double>(count) + 2.0 * kVocab * kWidth;
  time({"embedding backward", shape, bytes}, [&](int) {
    ZP_REQUIRE(cuda::embedding_backward(
        {dout.data(), ids.data(), table.data(), workspace.data(), tokens, kVocab, kWidth, false},
        nullptr));
  });
}

}  // namespace

void check_cross_entropy(Suite& suite) {
  if (!suite.wants("cross_entropy")) return;
  check_loss_shape(suite, 3, 8, 1.0);
  check_loss_shape(suite, 5, 1000, 3.0);
  check_loss_shape(suite, 4, 4104, 40.0);
  if (suite.is_small) return;
  check_loss_shape(suite, 301, 32000, 2.0);
  check_loss_shape(suite, 7, 50304, 5.0);
  check_loss_shape(suite, 2, cuda::kCrossEntropyVocabMax, 1.0);
  if (!suite.is_timing) return;
  time_loss(8192);
  time_loss(4096);
}

void check_embedding(Suite& suite) {
  if (!suite.wants("embedding")) return;
  check_embedding_shape(suite, {5, 3, 8, 3});
  check_embedding_shape(suite, {300, 1500, 72, 20});
  check_embedding_shape(suite, {257, 33, 64, 1});
  if (suite.is_small) return;
  check_embedding_shape(suite, {8192, 32000, 1024, 32000});
  check_embedding_shape(suite, {5000, 40000, 128, 300});
  if (!suite.is_timing) return;
  time_embedding(8192);
  time_embedding(4096);
}

}  // namespace zeroproof::check
