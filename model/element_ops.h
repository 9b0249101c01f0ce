#pragma once

#include <cmath>

#include "zeroproof/internal/model/device_code.h"
#include "zeroproof/internal/model/ops.h"

namespace zeroproof {

// The operations of Ops on one element, before it is rounded: one source for the host's loops and
// the GPU's kernels, whose mathematical functions may differ in the last bit.

ZP_HOST_DEVICE inline double evaluate(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::neg:
      return -x;
    case UnaryOp::abs:
      return std::fabs(x);
    case UnaryOp::sign:
      return x > 0 ? 1.0 : (x < 0 ? -1.0 : x);
    case UnaryOp::relu:
      return x > 0 || std::isnan(x) ? x : 0.0;
    case UnaryOp::step:
      return x > 0 ? 1.0 : 0.0;
    case UnaryOp::tanh:
      return std::tanh(x);
    case UnaryOp::sin:
      return std::sin(x);
    case UnaryOp::cos:
      return std::cos(x);
    case UnaryOp::sqrt:
      return std::sqrt(x);
    case UnaryOp::exp:
      return std::exp(x);
    case UnaryOp::log:
      return std::log(x);
    case UnaryOp::erf:
      return std::erf(x);
  }
  return x;
}

ZP_HOST_DEVICE inline double evaluate(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::pow:
      return std::pow(a, b);
  }
  return a;
}

}  // namespace zeroproof
