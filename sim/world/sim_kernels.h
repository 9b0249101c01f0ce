#pragma once

#include <array>

#include "engine/runtime/host/host_kernels.h"
#include "sim/world/held_span.h"
#include "sim/world/sim_stream.h"
#include "zeroproof/internal/engine/runtime/kernels.h"

namespace zeroproof::sim {

// The arithmetic of the host's kernels, done when the world runs the work.
class SimKernels final : public Kernels {
 public:
  explicit SimKernels(SimStreams& streams);  // which must outlive it

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
  template <std::size_t kSpans, class Work>
  void launch(Stream& stream, const std::array<Span, kSpans>& spans, Work work);
  void note(Stream& stream, const Span& target, const Span& source = {});

  SimStreams& streams_;
  host::StreamLog silent_;  // the host's kernels do not report: we did
  host::HostStream done_;   // where they run: everything on it is in the past
  host::HostKernels arithmetic_;
};

}  // namespace zeroproof::sim
