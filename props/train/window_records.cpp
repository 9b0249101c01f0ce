#include "props/train/window_records.h"

#include <algorithm>

#include "props/train/case_inputs.h"
#include "props/train/case_storage.h"
#include "props/train/weight_visit.h"

namespace zeroproof::train {
namespace {

std::size_t engines_of(const WindowContext& window) {
  return static_cast<std::size_t>(window.spec.engines);
}

}  // namespace

void record_values(Pass& pass, const std::string& name, const std::vector<double>& values) {
  pass.target().record(name, Tensor::of(values, {std::ssize(values)}));
}

void record_number(Pass& pass, const std::string& name, double value) {
  record_values(pass, name, {value});
}

void record_idle_step(const WindowContext& window) {
  StepOutcome outcome;
  if (window.engines) outcome = window.engines->last_outcome();
  const bool says_nothing =
      !outcome.is_applied && !outcome.has_overflow && !outcome.grad_norm.has_value();
  record_number(window.pass, "a step at no boundary says nothing", says_nothing ? 1.0 : 0.0);
}

void record_gradients_behind(const WindowContext& window) {
  std::vector<double> values;
  for (std::size_t i = 0; window.engines && i < engines_of(window); ++i)
    for (const FullTensor& gradient : window.engines->engine(i).full_gradients())
      values.insert(values.end(), gradient.values.begin(), gradient.values.end());
  const auto is_some = [](double value) { return value != 0.0; };
  record_number(window.pass, "gradients behind a step",
                static_cast<double>(std::ranges::count_if(values, is_some)));
}

void record_loss(Pass& pass, const Tensor& loss) {
  pass.target().record("loss", loss.detach());
}

void record_refusal(Pass& pass, const std::string& what, bool is_refused) {
  record_number(pass, "refused/" + what, is_refused ? 1.0 : 0.0);
}

std::int64_t live_bytes(const WindowContext& window, Placement placement) {
  if (!window.engines) return 0;
  return window.engines->engine(0).runtime().memory().stats(placement).live_bytes;
}

void record_bytes(const WindowContext& window, std::int64_t more) {
  if (window.spec.stage != 3 || window.spec.returns != 0) return;
  const std::int64_t room = persistent_bytes(window.spec);
  record_number(window.pass, "bytes that stay",
                static_cast<double>(std::max<std::int64_t>(more - room, 0)));
}

void record_kept(const WindowContext& window, const std::function<void()>& drop_graphs) {
  double more = 0;
  if (window.engines) {
    window.engines->engine(0).full_gradients();  // whatever reduces them is over
    const std::int64_t before = live_bytes(window, Placement::device);
    drop_graphs();
    const std::int64_t kept = before - live_bytes(window, Placement::device);
    const std::int64_t item =
        item_bytes(model_dtype(static_cast<Precision>(window.spec.precision)));
    // Each parameter is whole with the padding of its slices.
    const std::int64_t padding = window.spec.parameters() * (window.spec.ranks - 1);
    const std::int64_t room = (window.spec.live + padding) * item;
    more = static_cast<double>(std::max<std::int64_t>(kept - room, 0));
  }
  record_number(window.pass, "bytes that graphs keep past their room", more);
}

void record_offloaded(const WindowContext& window) {
  if (window.spec.is_offloaded == 0) return;
  const std::int64_t lacking = offloaded_bytes(window.spec) - live_bytes(window, Placement::host);
  record_number(window.pass, "bytes that the host lacks",
                static_cast<double>(window.engines ? std::max<std::int64_t>(lacking, 0) : 0));
}

void record_between(const WindowContext& window, std::size_t first,
                    const std::vector<std::int64_t>& bytes_behind) {
  const auto begin = window.spec.micros.begin() + static_cast<std::ptrdiff_t>(first);
  const bool is_alike = std::all_of(begin, begin + window.spec.accumulation,
                                    [&](const MicroSpec& micro) { return micro == *begin; });
  const std::int64_t most = *std::ranges::max_element(bytes_behind);
  const std::int64_t more = is_alike ? most - bytes_behind.back() : 0;
  record_number(window.pass, "bytes between micro-batches", static_cast<double>(more));
}

void record_whole(const WindowContext& window, std::int64_t elements) {
  record_number(window.pass, "bytes of kept graphs",
                static_cast<double>(elements_to_give_up(window.spec, elements)));
}

void record_casts(const WindowContext& window, const std::string& name, bool is_watched) {
  if (!is_watched || static_cast<Precision>(window.spec.precision) != Precision::autocast) return;
  Pass& pass = window.pass;
  std::int64_t bytes = 0;
  for (std::size_t engine = 0; engine < engines_of(window); ++engine)
    for (const nn::NamedParameter& named : pass.target().module(engine).named_parameters())
      if (const Tensor cast = pass.autograd().global().cast_cache.find(named.tensor);
          cast.is_defined() && window.engines)
        bytes += cast.numel() * item_bytes(cast.dtype());
  record_number(pass, name, static_cast<double>(bytes));
}

void record_seen(const WindowContext& window) {
  if (!compares_watched(window.spec)) return forget_seen(window);
  for (std::size_t engine = 0; engine < engines_of(window); ++engine)
    record_values(window.pass, "gradients for inputs", model_of(window.pass, engine).take_seen());
}

void forget_seen(const WindowContext& window) {
  for (std::size_t engine = 0; engine < engines_of(window); ++engine)
    model_of(window.pass, engine).take_seen();
}

}  // namespace zeroproof::train
