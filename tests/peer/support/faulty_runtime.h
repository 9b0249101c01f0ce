#pragma once

#include <array>
#include <memory>
#include <string>

#include "zeroproof/engine/runtime/runtime.h"

namespace zeroproof::peer {

// A runtime with one thing broken below the engine, to show that a row sees it:
// lost_reduction: every rank keeps its own part in place of a sum over the ranks;
// lost_gather: of what is gathered every rank sees its own part alone;
// lost_broadcast: no rank gets the root's values;
// lost_accumulation: what is to be added to memory is not; lost_update: the optimizer's kernels are
// no-ops; lost_scaling: multiplications and divisions are no-ops; lost_read: the host reads zeros.
bool is_seam_fault(const std::string& fault);

class FaultyRuntime final : public Runtime {
 public:
  // `inner` must outlive it.
  FaultyRuntime(Runtime& inner, const std::string& fault);
  ~FaultyRuntime() override;

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  Device device() const override { return inner_.device(); }
  Clock& clock() override { return inner_.clock(); }
  Memory& memory() override { return inner_.memory(); }
  Kernels& kernels() override { return *kernels_; }
  const Ops& ops() const override { return inner_.ops(); }
  Stream& stream(StreamRole role) override { return inner_.stream(role); }
  Stream& user_stream(StreamIndex index) override { return inner_.user_stream(index); }
  ProcessGroup& group(GroupKind kind) override { return *groups_[static_cast<std::size_t>(kind)]; }
  GraphCapture* graphs() override { return inner_.graphs(); }
  std::optional<std::string> poll_error() override { return inner_.poll_error(); }
  Journal* journal() override { return inner_.journal(); }
  FaultPoint* faults() override { return inner_.faults(); }

 private:
  Runtime& inner_;
  std::unique_ptr<Kernels> kernels_;
  std::array<std::unique_ptr<ProcessGroup>, kGroupKinds> groups_;
};

}  // namespace zeroproof::peer
