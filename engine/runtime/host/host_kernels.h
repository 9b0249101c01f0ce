#pragma once

#include "engine/runtime/host/host_stream.h"
#include "zeroproof/internal/engine/runtime/kernels.h"

namespace zeroproof::host {

// Loops over the doubles of the storage: each element in double, one rounding. Factors and
// divisors are taken as they are. Updates have the bits of optim::Adam and optim::Sgd; their spans
// must be dense. `log` must outlive it.
class HostKernels final : public Kernels {
 public:
  explicit HostKernels(const StreamLog& log) : log_(log) {}

  void fill(Stream& stream, const Span& target, double value) override;
  void copy(Stream& stream, const Span& target, const Span& source, double factor = 1.0) override;
  void add(Stream& stream, const Span& target, const Span& source, double factor = 1.0) override;
  void scale(Stream& stream, const Span& target, double factor) override;
  void divide(Stream& stream, const Span& target, double divisor) override;
  void add_squares(Stream& stream, const Span& target, const Span& source) override;
  void count_non_finite(Stream& stream, const Span& target, const Span& source) override;
  void adam(Stream& stream, const AdamUpdate& update) override;
  void sgd(Stream& stream, const SgdUpdate& update) override;
  void clip_factor(Stream& stream, const Span& factor, const Span& squares,
                   const ClipRule& rule) override {
    Kernels::clip_factor(stream, factor, squares, rule);
  }
  void scale_by(Stream& stream, const Span& target, const Span& factor) override {
    Kernels::scale_by(stream, target, factor);
  }
  std::vector<double> read(Stream& stream, const Span& source) override;
  void write(Stream& stream, const Span& target, const std::vector<double>& values) override;

 private:
  void note(Stream& stream, const Span& target, const Span& source) const;
  void note_target(Stream& stream, const Span& target) const;

  const StreamLog& log_;
};

}  // namespace zeroproof::host
