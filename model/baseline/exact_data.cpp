#include "model/baseline/exact_data.h"

#include <cmath>

#include "model/check.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::baseline {
namespace {

constexpr std::int64_t kSmallIntegers = 3;  // 1, 2, 3, 1, 2, 3, ...

}  // namespace

int significand_bits(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 53;
    case DType::float32:
      return 24;
    case DType::bfloat16:
      return 8;
    case DType::float16:
      break;
  }
  return 11;
}

ExactData::ExactData(DType dtype, std::int64_t contributions)
    : dtype_(dtype),
      contributions_(contributions),
      is_decodable_(contributions <= significand_bits(dtype)) {
  if (!is_decodable_ && sum() > std::ldexp(1.0, significand_bits(dtype)))
    throw AutogradError("exact data: too many contributions for the significand of the dtype");
}

double ExactData::value(std::int64_t contribution) const {
  ZP_CHECK(contribution >= 0 && contribution < contributions_, "a contribution out of range");
  if (is_decodable_) return std::ldexp(1.0, static_cast<int>(contribution));
  return static_cast<double>(1 + contribution % kSmallIntegers);
}

double ExactData::sum() const {
  double total = 0.0;
  for (std::int64_t c = 0; c < contributions_; ++c) total += value(c);
  return total;
}

std::vector<bool> ExactData::decode(double sum) const {
  ZP_CHECK(is_decodable_, "sums of small integers do not show their parts");
  std::vector<bool> is_there;
  for (std::int64_t c = 0; c < contributions_; ++c)
    is_there.push_back(std::fmod(std::floor(sum / value(c)), 2.0) == 1.0);
  return is_there;
}

Tensor ExactData::loss(Autograd& ag, const TensorList& parameters,
                       std::int64_t contribution) const {
  Tensor total = Tensor::full({}, 0.0, dtype_);
  for (const Tensor& parameter : parameters) {
    const Tensor factor = Tensor::full(parameter.sizes(), value(contribution), dtype_);
    total = add(ag, total, zeroproof::sum(ag, mul(ag, parameter, factor)));
  }
  return total;
}

}  // namespace zeroproof::baseline
