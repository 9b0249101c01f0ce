#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/record.h"
#include "zeroproof/internal/engine/release.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/internal/model/torch_release.h"
#include "zeroproof/model/event.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// One collective as a rank issued it.
struct CollectiveCall {
  std::string op;
  std::string group;
  std::int64_t sequence = 0;  // within its group
  std::int64_t bytes = 0;
  bool is_async = false;

  std::string text() const;
  friend bool operator==(const CollectiveCall&, const CollectiveCall&) = default;
};

// The recording of one rank of a training run: a trace of DeepSpeed's, or one of our engine's.
struct DeepspeedRecording {
  HeaderRecord header;
  Release release;     // of DeepSpeed; 0.0.0 of a commit without one
  TorchRelease torch;  // what it ran on
  std::vector<std::string>
      tokens;  // section 11 of docs/reference/trace_format.md without e+, s+ and e-
  std::vector<CollectiveCall> collectives;
  std::vector<ParamRecord> parameters;
  std::vector<TensorRecord> tensors;  // in their order; names come again

  // The nth one of that role, counted from 0; null when there are fewer.
  const TensorRecord* find(std::string_view role, std::size_t nth) const;
};

// What of `event` is compared; its names are in `names`.
void take_event(const HookEvent& event, const NameTable& names, DeepspeedRecording& recording);

// Code unreadable, one line, for a file that is no complete trace.
Result<DeepspeedRecording> read_deepspeed_recording(const std::string& path);

}  // namespace zeroproof
