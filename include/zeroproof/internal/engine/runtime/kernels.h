#pragma once

#include <cstdint>
#include <vector>

#include "zeroproof/internal/engine/runtime/clip_rule.h"
#include "zeroproof/internal/engine/runtime/span.h"
#include "zeroproof/internal/engine/runtime/stream.h"
#include "zeroproof/model/optim/options.h"

namespace zeroproof {

// One AdamW or Adam update of a flat shard; all spans have as many elements. `step` counts from 1.
// `copy`, empty for none, gets what copy() of the new parameter would give it, without reading it.
struct AdamUpdate {
  Span parameter;
  Span grad;
  Span exp_avg;
  Span exp_avg_sq;
  std::int64_t step = 1;
  optim::AdamOptions options;
  Span copy = {};
};

// `momentum_buffer` is empty without momentum, and is written, not read, when step is 1.
struct SgdUpdate {
  Span parameter;
  Span grad;
  Span momentum_buffer;
  std::int64_t step = 1;
  optim::SgdOptions options;
};

// The arithmetic of the engine on flat memory, queued on a stream. Every element is computed in
// double, or in float32 where the kernel of the device does, and rounded once to the dtype of the
// target, which may differ from the source's. Sums go from left to right. No call allocates.
class Kernels {
 public:
  virtual ~Kernels() = default;

  virtual void fill(Stream& stream, const Span& target, double value) = 0;
  // target = source * factor
  virtual void copy(Stream& stream, const Span& target, const Span& source,
                    double factor = 1.0) = 0;
  // target += source * factor
  virtual void add(Stream& stream, const Span& target, const Span& source, double factor = 1.0) = 0;
  virtual void scale(Stream& stream, const Span& target, double factor) = 0;
  virtual void divide(Stream& stream, const Span& target,
                      double divisor) = 0;  // div_: not 1 / divisor

  // Add to the first element of `target`: the squares of the source; how many are not finite.
  virtual void add_squares(Stream& stream, const Span& target, const Span& source) = 0;
  virtual void count_non_finite(Stream& stream, const Span& target, const Span& source) = 0;

  virtual void adam(Stream& stream, const AdamUpdate& update) = 0;
  virtual void sgd(Stream& stream, const SgdUpdate& update) = 0;

  // Where the host does not know the numbers (GraphCapture), which are one float64 of the device
  // each: factor = 1 / divisor_of(rule, norm of these squares); target *= factor. The bodies here
  // are for kernels whose numbers the host may read.
  virtual void clip_factor(Stream& stream, const Span& factor, const Span& squares,
                           const ClipRule& rule) = 0;
  virtual void scale_by(Stream& stream, const Span& target, const Span& factor) = 0;

  // The host waits for the stream and gets the numbers; or gives them.
  virtual std::vector<double> read(Stream& stream, const Span& source) = 0;
  virtual void write(Stream& stream, const Span& target, const std::vector<double>& values) = 0;
};

}  // namespace zeroproof
