#include "sim/hook_order/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof::hook_order {
namespace {

class Parameters final : public nn::Module {
 public:
  Parameters(std::uint32_t count, std::int64_t elements) {
    for (std::uint32_t p = 0; p < count; ++p) {
      Tensor parameter = Tensor::full({elements}, 1.0, DType::float32);
      parameter.set_requires_grad(true);
      register_parameter(fmt::format("p{}", p), parameter);
    }
  }

 protected:
  TensorList forward(Autograd&, const TensorList& inputs) const override { return inputs; }
};

ZeroConfig config_of(const Settings& settings) {
  ZeroConfig config;
  config.stage = static_cast<int>(settings.stage);
  config.reduce_bucket_size = std::int64_t{settings.bucket} * settings.elements;
  config.overlap_comm = settings.has_overlap;
  return config;
}

EngineOptions options_of(const Settings& settings) {
  EngineOptions options;
  options.quirks = settings.quirks;
  return options;
}

}  // namespace

Rank::Rank(const Settings& settings, std::uint32_t number, Device& device)
    : settings_(settings),
      number_(number),
      device_(device),
      digest_(device),
      module_(std::make_unique<Parameters>(settings.hooks, settings.elements)),
      core_(autograd_, *module_, config_of(settings), device, options_of(settings),
            LossScaler::of(config_of(settings))) {
  all_ = settings.hooks == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << settings.hooks) - 1;
  const bool is_last = number + 1 == settings.ranks;
  if (settings.defect == Defect::lost_hook && is_last)
    all_ &= ~(std::uint64_t{1} << (settings.hooks - 1));
  for (std::uint32_t pass = 0; pass < settings.passes; ++pass) {
    TensorList& of_pass = gradients_.emplace_back();
    for (std::uint32_t p = 0; p < settings.hooks; ++p) {
      of_pass.push_back(Tensor::full({settings.elements}, 0.0, DType::float32));
      write_contributions(of_pass.back(), p);
    }
  }
  window_ = core_.optimizer().gradient_slices();
  core_.forward({});
}

// Exact in a double: a hexadecimal digit counts each rank's, the rest sums up of which element.
double Rank::contribution(std::uint32_t rank, std::uint32_t cell) const {
  return static_cast<double>((std::uint64_t{1} << 4 * rank) + (std::uint64_t{cell + 1} << 32));
}

void Rank::begin() {
  open_all_hooks();
  pass_ = 0;
  is_done_ = false;
  backwards_ = core_.counters().backwards;
  device_.count();
  task_.begin();
}

void Rank::open_all_hooks() {
  fired_ = 0;
  open_count_ = static_cast<std::size_t>(std::popcount(all_));
}

// As AccumulateGrad leaves it. Only an engine that sums up passes ever changes its values.
void Rank::give_gradient(std::uint32_t p) {
  const Tensor& gradient = gradients_[pass_][p];
  if (settings_.passes > 1) write_contributions(gradient, p);
  core_.context().parameters[p].tensor.impl().grad = gradient;
}

void Rank::write_contributions(const Tensor& gradient, std::uint32_t p) const {
  std::vector<double>& elements = gradient.impl().storage->elements;
  for (std::uint32_t e = 0; e < settings_.elements; ++e)
    elements[e] = contribution(number_, p * settings_.elements + e);
}

void Rank::fire(std::uint32_t p) {
  give_gradient(p);
  if ((open_hooks() >> p & 1) != 0) --open_count_;
  fired_ |= std::uint64_t{1} << p;
  device_.count();
  core_.on_gradient(core_.context().parameters[p]);
}

std::int64_t Rank::end_pass() {
  has_passed_ = true;
  device_.count();
  task_.finish();
  const std::int64_t epilogues = core_.counters().backwards - backwards_;
  backwards_ = core_.counters().backwards;
  if (pass_ + 1 == settings_.passes) {
    is_done_ = true;
  } else {
    ++pass_;
    open_all_hooks();
    device_.count();
    task_.begin();
  }
  return epilogues;
}

void Rank::split_task() {
  has_passed_ = true;
  task_.finish();
  task_.begin();
}

void Rank::fail() {
  if (task_.is_open()) task_.abandon();
  is_done_ = true;
}

void Rank::reset() {
  if (task_.is_open()) task_.abandon();
  open_all_hooks();
  pass_ = 0;
  is_done_ = false;
  if (!has_passed_) return;
  has_passed_ = false;
  core_.forward({});
  core_.zero_grad();
}

bool Rank::is_window_right(std::uint32_t passes) const {
  for (const GradientSlice& slice : window_) {
    const Storage& storage = *slice.values.tensor->storage;
    const auto first =
        static_cast<std::size_t>(slice.values.tensor->offset_elements + slice.values.begin);
    for (std::int64_t e = 0; e < slice.values.elements; ++e) {
      const auto cell = static_cast<std::uint32_t>(
          std::int64_t{slice.parameter.value} * settings_.elements + slice.begin + e);
      double expected = 0.0;
      for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank)
        expected += contribution(rank, cell);
      if (storage.elements[first + static_cast<std::size_t>(e)] != expected * passes) return false;
    }
  }
  return true;
}

Fingerprint Rank::digest() {
  digest_.begin();
  digest_.number(fired_);
  digest_.number(std::uint64_t{pass_} | (is_done_ ? 1U << 8 : 0U) |
                 (task_.is_open() ? 1U << 9 : 0U) | (device_.is_held_up() ? 1U << 10 : 0U));
  core_.visit_state(digest_);
  device_.tell_queues(digest_);
  return digest_.end();
}

bool Rank::has_gradient_left() const {
  return std::ranges::any_of(core_.context().parameters, [](const ZeroParameter& parameter) {
    return parameter.tensor.impl().grad.is_defined();
  });
}

}  // namespace zeroproof::hook_order
