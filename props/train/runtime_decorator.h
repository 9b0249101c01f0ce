#pragma once

#include "zeroproof/engine/runtime/runtime.h"

namespace zeroproof::train {

// A rank's runtime that passes everything on: a fault at the seam overrides what it does otherwise.
class RuntimeDecorator : public Runtime {
 public:
  explicit RuntimeDecorator(Runtime& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  Device device() const override { return inner_.device(); }
  Clock& clock() override { return inner_.clock(); }
  Memory& memory() override { return inner_.memory(); }
  Kernels& kernels() override { return inner_.kernels(); }
  const Ops& ops() const override { return inner_.ops(); }
  Stream& stream(StreamRole role) override { return inner_.stream(role); }
  Stream& user_stream(StreamIndex index) override { return inner_.user_stream(index); }
  ProcessGroup& group(GroupKind kind) override { return inner_.group(kind); }
  GraphCapture* graphs() override { return inner_.graphs(); }
  std::optional<std::string> poll_error() override { return inner_.poll_error(); }
  Journal* journal() override { return inner_.journal(); }
  FaultPoint* faults() override { return inner_.faults(); }

 protected:
  Runtime& inner() { return inner_; }

 private:
  Runtime& inner_;
};

}  // namespace zeroproof::train
