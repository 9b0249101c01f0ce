#include "props/train/decoder_truth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "model/check.h"
#include "props/reference/whole_engine.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

constexpr double kInfiniteDistance = std::numeric_limits<double>::infinity();

double norm_of_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares);
}

// NaN counts as far away.
double share_of(double distance, double whole) {
  if (distance == 0.0) return 0.0;
  const double share = distance / whole;
  if (std::isnan(share)) return kInfiniteDistance;
  return share;
}

void compare_losses(const std::vector<double>& losses, const std::vector<double>& expected,
                    DecoderDistance& distance) {
  if (losses == expected) return;
  distance.is_bitwise = false;
  if (losses.size() != expected.size()) distance.loss = kInfiniteDistance;
  for (std::size_t i = 0; i < std::min(losses.size(), expected.size()); ++i)
    distance.loss =
        std::max(distance.loss, share_of(std::abs(losses[i] - expected[i]), std::abs(expected[i])));
}

// By forward, over all ranks.
std::vector<double> mean_losses(const std::vector<DecoderRank>& ranks) {
  std::vector<double> means(ranks.front().losses.size(), 0.0);
  for (const DecoderRank& rank : ranks)
    for (std::size_t i = 0; i < means.size(); ++i)
      means[i] += rank.losses.at(i) / static_cast<double>(ranks.size());
  return means;
}

void compare_parameters(const std::vector<FullTensor>& parameters, const DecoderTruth& truth,
                        DecoderDistance& distance) {
  for (std::size_t i = 0; i < truth.parameters.size(); ++i) {
    const FullTensor& expected = truth.parameters[i];
    const auto at = std::ranges::find(parameters, expected.name, &FullTensor::name);
    const bool fits = at != parameters.end() && at->values.size() == expected.values.size();
    const double way = norm_of_difference(expected.values, truth.initial[i].values);
    const double share =
        fits ? share_of(norm_of_difference(at->values, expected.values), way) : kInfiniteDistance;
    if (share == 0.0) continue;
    distance.is_bitwise = false;
    if (share < distance.parameter) continue;
    distance.parameter = share;
    distance.tensor = expected.name;
  }
}

class TruthRun {
 public:
  TruthRun(const DecoderCell& cell, int shares, Autograd& autograd)
      : cell_(cell),
        autograd_(autograd),
        model_(cell.sizes, cell.seed),
        engine_(model_, config_of(cell), autograd.ops(), {.replicas = {.ranks = shares}}),
        sums_(static_cast<std::size_t>(shares)) {
    const std::int64_t sequences = cell.batch * cell.world_size;
    ZP_CHECK(shares > 0 && sequences % shares == 0, "a batch in shares that do not divide it");
    share_sequences_ = sequences / shares;
    truth_.losses.resize(sums_.size());
    truth_.initial = engine_.masters();
  }

  // Stages 2 and 3 reduce after every backward, the others once.
  void step() {
    const ZeroConfig& config = engine_.config();
    for (std::int64_t i = 0; i < config.gradient_accumulation_steps; ++i) {
      for (std::size_t share = 0; share < sums_.size(); ++share) differentiate(share);
      ++forwards_;
      if (config.stage >= 2) reduce();
    }
    if (config.stage < 2) reduce();
    engine_.step();
  }

  DecoderTruth finish() {
    truth_.parameters = engine_.masters();
    return std::move(truth_);
  }

 private:
  void differentiate(std::size_t share) {
    const auto first = static_cast<std::int64_t>(share) * share_sequences_;
    const TensorList batch = batch_of(cell_, forwards_, {first, share_sequences_});
    const Tensor loss = engine_.module()(autograd_, batch)[0];
    truth_.losses[share].push_back(loss.item());
    const auto accumulated = static_cast<double>(engine_.config().gradient_accumulation_steps);
    autograd_.backward(mul(autograd_, loss, 1.0 / accumulated));
    engine_.collect(sums_[share], 1.0);
  }

  void reduce() {
    engine_.reduce(sums_);
    for (TensorList& sums : sums_) sums.clear();
  }

  const DecoderCell& cell_;
  Autograd& autograd_;
  nn::Decoder model_;
  reference::WholeEngine engine_;
  std::vector<TensorList> sums_;  // by share
  std::int64_t share_sequences_ = 0;
  std::int64_t forwards_ = 0;
  DecoderTruth truth_;
};

}  // namespace

DecoderTruth run_decoder_truth(const DecoderCell& cell, int shares, const Ops& ops) {
  Autograd autograd(ops);
  TruthRun run(cell, shares, autograd);
  for (std::int64_t step = 0; step < cell.steps; ++step) run.step();
  return run.finish();
}

DecoderDistance distance_of(const std::vector<DecoderRank>& ranks, const DecoderTruth& truth) {
  DecoderDistance distance;
  if (truth.losses.size() == ranks.size()) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (has_run(ranks[rank])) compare_losses(ranks[rank].losses, truth.losses[rank], distance);
  } else if (std::ranges::all_of(ranks, has_run)) {
    compare_losses(mean_losses(ranks), truth.losses.front(), distance);
  }
  const auto here = std::ranges::find_if(ranks, has_run);
  ZP_CHECK(here != ranks.end(), "no run here can be compared");
  compare_parameters(here->parameters, truth, distance);
  return distance;
}

DecoderBound bound_of(Precision precision) {
  if (precision == Precision::bf16) return {.loss = 1e-3, .parameter = 0.3};
  return {.loss = 1e-6, .parameter = 1e-3};
}

}  // namespace zeroproof::train
