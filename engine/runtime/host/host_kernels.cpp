#include "engine/runtime/host/host_kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/runtime/host/elements.h"
#include "engine/runtime/host/rounding.h"
#include "model/check.h"

namespace zeroproof::host {
namespace {

void check_equal_length(Span target, Span source) {
  ZP_CHECK(target.elements == source.elements, "a kernel on spans of different lengths");
}

double squared_sum(double total, Span source) {
  for_each_element(source, [&](double x) { total += x * x; });
  return total;
}

double non_finite_count(double count, Span source) {
  for_each_element(source, [&](double x) { count += std::isfinite(x) ? 0.0 : 1.0; });
  return count;
}

double& first_of(Span target) {
  ZP_CHECK(!target.is_empty() && is_dense(target), "a sum needs an element to go to");
  return *begin_of(target);
}

}  // namespace

void HostKernels::fill(Stream& stream, const Span& target, double value) {
  note_target(stream, target);
  const double rounded = round_to(target.dtype(), value);
  for_each_element(target, [&](double& element) { element = rounded; });
}

void HostKernels::copy(Stream& stream, const Span& target, const Span& source, double factor) {
  note(stream, target, source);
  check_equal_length(target, source);
  const Rounding round{target.dtype()};
  if (factor == 1.0 && target.dtype() == source.dtype()) {
    for_each_pair(target, source, [](double& to, double from) { to = from; });
  } else {
    for_each_pair(target, source, [&](double& to, double from) { to = round(from * factor); });
  }
}

void HostKernels::add(Stream& stream, const Span& target, const Span& source, double factor) {
  note(stream, target, source);
  check_equal_length(target, source);
  const Rounding round{target.dtype()};
  for_each_pair(target, source, [&](double& to, double from) { to = round(to + from * factor); });
}

void HostKernels::scale(Stream& stream, const Span& target, double factor) {
  note_target(stream, target);
  const Rounding round{target.dtype()};
  for_each_element(target, [&](double& element) { element = round(element * factor); });
}

void HostKernels::divide(Stream& stream, const Span& target, double divisor) {
  note_target(stream, target);
  const Rounding round{target.dtype()};
  for_each_element(target, [&](double& element) { element = round(element / divisor); });
}

void HostKernels::add_squares(Stream& stream, const Span& target, const Span& source) {
  const Span sum = target.part(0, 1);
  note(stream, sum, source);
  first_of(sum) = round_to(sum.dtype(), squared_sum(first_of(sum), source));
}

void HostKernels::count_non_finite(Stream& stream, const Span& target, const Span& source) {
  const Span sum = target.part(0, 1);
  note(stream, sum, source);
  first_of(sum) = round_to(sum.dtype(), non_finite_count(first_of(sum), source));
}

std::vector<double> HostKernels::read(Stream& stream, const Span& source) {
  log_.read(stream, source);
  stream.synchronize();
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(source.elements));
  for_each_element(source, [&](double element) { values.push_back(element); });
  return values;
}

void HostKernels::write(Stream& stream, const Span& target, const std::vector<double>& values) {
  ZP_CHECK(std::cmp_equal(values.size(), target.elements), "values do not fill the span");
  note_target(stream, target);
  const Rounding round{target.dtype()};
  auto value = values.begin();
  for_each_element(target, [&](double& element) { element = round(*value++); });
}

void HostKernels::note(Stream& stream, const Span& target, const Span& source) const {
  log_.read(stream, source);
  note_target(stream, target);
}

void HostKernels::note_target(Stream& stream, const Span& target) const {
  log_.write(stream, target);
  note_write(target);
}

}  // namespace zeroproof::host
