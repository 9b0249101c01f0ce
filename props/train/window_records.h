#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "props/train/window_context.h"

namespace zeroproof::train {

// What a generated window measures and records, to be compared with the baseline, which records
// under the same names what has to come out.

void record_values(Pass& pass, const std::string& name, const std::vector<double>& values);
void record_number(Pass& pass, const std::string& name, double value);
// What the outcome of a step at no boundary says, which is nothing.
void record_idle_step(const WindowContext& window);
// The gradients that engines have behind a step, which are none.
void record_gradients_behind(const WindowContext& window);
void record_loss(Pass& pass, const Tensor& loss);
// "refused/<what>".
void record_refusal(Pass& pass, const std::string& what, bool is_refused);

// Of this rank's runtime; of the baseline none.
std::int64_t live_bytes(const WindowContext& window, Placement placement);
// Of stage 3 a window leaves nothing whole but what is persistent: `more` bytes of the device.
void record_bytes(const WindowContext& window, std::int64_t more);
// Of masters, optimizer states and gradients at least so many bytes are the host's.
void record_offloaded(const WindowContext& window);
// Dropping graphs gives back what they keep, which stage3_max_live_parameters has room for.
void record_kept(const WindowContext& window, const std::function<void()>& drop_graphs);
// Where gradients are partitioned, a micro-batch leaves what the last one like it leaves:
// `bytes_behind` the micro-batches of the window, whose first one is `first` of the case.
void record_between(const WindowContext& window, std::size_t first,
                    const std::vector<std::int64_t>& bytes_behind);
// Of graphs that live, though nobody needs their values: a step has changed them, too.
void record_whole(const WindowContext& window, std::int64_t elements);
// Of weights, that the autograd keeps for their next use; nothing, unless `is_watched` and under
// autocast.
void record_casts(const WindowContext& window, const std::string& name, bool is_watched);

// What the user watched since it was asked last; of many it is one number each that the baseline
// has, too. And of a backward that the baseline does not have.
void record_seen(const WindowContext& window);
void forget_seen(const WindowContext& window);

}  // namespace zeroproof::train
