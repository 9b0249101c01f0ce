#include "sim/world/sim_kernels.h"

#include <algorithm>
#include <array>
#include <utility>

namespace zeroproof::sim {

SimKernels::SimKernels(SimStreams& streams)
    : streams_(streams), done_(StreamId{0}, silent_), arithmetic_(silent_) {}

// work(kernels, stream, spans) does the arithmetic, at once on a stream in step with the host.
template <std::size_t kSpans, class Work>
void SimKernels::launch(Stream& stream, const std::array<Span, kSpans>& spans, Work work) {
  auto& queue = static_cast<SimStream&>(stream);
  for (const Span& span : spans) queue.prepare(span);
  if (queue.begin_kernel(spans[0].elements)) {
    work(arithmetic_, done_, spans);
    return;
  }
  std::array<HeldSpan, kSpans> held;
  std::ranges::transform(spans, held.begin(), [](Span span) { return HeldSpan(span); });
  queue.launch([this, held = std::move(held), work]() mutable {
    std::array<Span, kSpans> there;
    bool is_alive = true;
    for (std::size_t i = 0; i < kSpans; ++i) {
      is_alive = held[i].acquire() && is_alive;
      there[i] = held[i].span();
    }
    if (is_alive) work(arithmetic_, done_, there);
    for (HeldSpan& span : held) span.release();
    return is_alive;
  });
  for (const Span& span : spans) queue.hold(span);
}

void SimKernels::note(Stream& stream, const Span& target, const Span& source) {
  streams_.log().read(stream, source);
  streams_.log().write(stream, target);
}

void SimKernels::fill(Stream& stream, const Span& target, double value) {
  note(stream, target);
  launch<1>(stream, {target}, [value](auto& kernels, auto& on, const auto& spans) {
    kernels.fill(on, spans[0], value);
  });
}

void SimKernels::copy(Stream& stream, const Span& target, const Span& source, double factor) {
  note(stream, target, source);
  launch<2>(stream, {target, source}, [factor](auto& kernels, auto& on, const auto& spans) {
    kernels.copy(on, spans[0], spans[1], factor);
  });
}

void SimKernels::add(Stream& stream, const Span& target, const Span& source, double factor) {
  note(stream, target, source);
  launch<2>(stream, {target, source}, [factor](auto& kernels, auto& on, const auto& spans) {
    kernels.add(on, spans[0], spans[1], factor);
  });
}

void SimKernels::scale(Stream& stream, const Span& target, double factor) {
  note(stream, target);
  launch<1>(stream, {target}, [factor](auto& kernels, auto& on, const auto& spans) {
    kernels.scale(on, spans[0], factor);
  });
}

void SimKernels::divide(Stream& stream, const Span& target, double divisor) {
  note(stream, target);
  launch<1>(stream, {target}, [divisor](auto& kernels, auto& on, const auto& spans) {
    kernels.divide(on, spans[0], divisor);
  });
}

void SimKernels::add_squares(Stream& stream, const Span& target, const Span& source) {
  note(stream, target.part(0, 1), source);
  launch<2>(stream, {target, source}, [](auto& kernels, auto& on, const auto& spans) {
    kernels.add_squares(on, spans[0], spans[1]);
  });
}

void SimKernels::count_non_finite(Stream& stream, const Span& target, const Span& source) {
  note(stream, target.part(0, 1), source);
  launch<2>(stream, {target, source}, [](auto& kernels, auto& on, const auto& spans) {
    kernels.count_non_finite(on, spans[0], spans[1]);
  });
}

void SimKernels::adam(Stream& stream, const AdamUpdate& update) {
  note(stream, update.parameter, update.grad);
  note(stream, update.exp_avg);
  note(stream, update.exp_avg_sq);
  note(stream, update.copy);
  launch<5>(stream, {update.parameter, update.grad, update.exp_avg, update.exp_avg_sq, update.copy},
            [update](auto& kernels, auto& on, const auto& spans) {
              AdamUpdate there = update;
              there.parameter = spans[0];
              there.grad = spans[1];
              there.exp_avg = spans[2];
              there.exp_avg_sq = spans[3];
              there.copy = spans[4];
              kernels.adam(on, there);
            });
}

void SimKernels::sgd(Stream& stream, const SgdUpdate& update) {
  note(stream, update.parameter, update.grad);
  note(stream, update.momentum_buffer);
  launch<3>(stream, {update.parameter, update.grad, update.momentum_buffer},
            [update](auto& kernels, auto& on, const auto& spans) {
              SgdUpdate there = update;
              there.parameter = spans[0];
              there.grad = spans[1];
              there.momentum_buffer = spans[2];
              kernels.sgd(on, there);
            });
}

std::vector<double> SimKernels::read(Stream& stream, const Span& source) {
  streams_.log().read(stream, source);
  stream.synchronize();
  return arithmetic_.read(done_, source);
}

void SimKernels::write(Stream& stream, const Span& target, const std::vector<double>& values) {
  note(stream, target);
  launch<1>(stream, {target}, [values](auto& kernels, auto& on, const auto& spans) {
    kernels.write(on, spans[0], values);
  });
}

}  // namespace zeroproof::sim
