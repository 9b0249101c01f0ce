#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/internal/model/torch_release.h"
#include "zeroproof/model/event.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// The recording of one run of a conformance program: a trace of PyTorch's, or one of ours.
struct Recording {
  using TensorKey = std::pair<std::string, std::string>;  // role, name

  HeaderRecord header;
  TorchRelease torch;
  std::vector<std::string> tokens;          // docs/reference/trace_format.md section 11
  std::vector<std::string> executed_nodes;  // names, over all calls; empty when not recorded
  std::map<TensorKey, TensorRecord> tensors;
};

// Gathers tokens and executed nodes of a run as it goes. `names` is that of the events.
class RecordingSink final : public EventSink {
 public:
  RecordingSink(Recording& recording, const NameTable& names)
      : recording_(recording), names_(names) {}
  void on_event(const HookEvent& event) override;

 private:
  Recording& recording_;
  const NameTable& names_;
};

// What the header says about `package`; nullopt when it does not name it.
std::optional<std::string> recorded_version(const HeaderRecord& header, std::string_view package);

// The newest release for a header that names none.
Result<TorchRelease> recorded_torch(const HeaderRecord& header);

// Code unreadable, one line, for a file that is no complete trace.
Result<Recording> read_recording(const std::string& path);

}  // namespace zeroproof
