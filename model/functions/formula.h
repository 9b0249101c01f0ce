#pragma once

#include "model/functions/activations.h"
#include "model/functions/scalars.h"
#include "model/wide.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

// The same formulas as with Wide, over the graph. For model/functions/*.cpp only.
namespace zeroproof::rules {

// In differentiable functions: what a derivative of a fused kernel is made of.
struct Diff {
  Autograd& ag;
  Tensor x;

  friend Diff operator+(const Diff& a, const Diff& b) { return {a.ag, add(a.ag, a.x, b.x)}; }
  friend Diff operator-(const Diff& a, const Diff& b) { return {a.ag, sub(a.ag, a.x, b.x)}; }
  friend Diff operator*(const Diff& a, const Diff& b) { return {a.ag, mul(a.ag, a.x, b.x)}; }
  friend Diff operator/(const Diff& a, const Diff& b) { return {a.ag, div(a.ag, a.x, b.x)}; }
  friend Diff operator+(const Diff& a, double b) { return {a.ag, add_scalar(a.ag, a.x, b)}; }
  friend Diff operator-(const Diff& a, double b) { return {a.ag, add_scalar(a.ag, a.x, -b)}; }
  friend Diff operator*(const Diff& a, double b) { return {a.ag, mul_scalar(a.ag, a.x, b)}; }
  friend Diff operator/(const Diff& a, double b) { return {a.ag, div_scalar(a.ag, a.x, b)}; }
  friend Diff exp(const Diff& a) { return {a.ag, zeroproof::exp(a.ag, a.x)}; }
  friend Diff erf(const Diff& a) { return {a.ag, zeroproof::erf(a.ag, a.x)}; }
  friend Diff tanh(const Diff& a) { return {a.ag, zeroproof::tanh(a.ag, a.x)}; }
  friend Diff inverse_root(const Diff& a) { return {a.ag, rsqrt(a.ag, a.x)}; }
  friend Diff sum_to(const Diff& a, const Shape& sizes) {
    return {a.ag, zeroproof::sum_to(a.ag, a.x, sizes)};
  }
};

}  // namespace zeroproof::rules
