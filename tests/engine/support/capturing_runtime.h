#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/engine/runtime/runtime.h"

namespace zeroproof {

// A rank whose device captures, without a device: work is done while it is captured, so that the
// first replay has no work to do, and a later one does what the test says. A read meanwhile
// fails, as on a GPU.
class CapturingRuntime final : public Runtime, public GraphCapture {
 public:
  // `inner` must outlive it.
  explicit CapturingRuntime(Runtime& inner) : inner_(inner), kernels_(*this) {}

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  Device device() const override { return inner_.device(); }
  Clock& clock() override { return inner_.clock(); }
  Memory& memory() override { return inner_.memory(); }
  Kernels& kernels() override { return kernels_; }
  const Ops& ops() const override { return inner_.ops(); }
  Stream& stream(StreamRole role) override { return inner_.stream(role); }
  Stream& user_stream(StreamIndex index) override { return inner_.user_stream(index); }
  ProcessGroup& group(GroupKind kind) override { return inner_.group(kind); }
  GraphCapture* graphs() override { return this; }
  std::optional<std::string> poll_error() override { return inner_.poll_error(); }
  Journal* journal() override { return inner_.journal(); }
  FaultPoint* faults() override { return inner_.faults(); }

  bool is_capturing() const override { return is_capturing_; }
  std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) override {
    is_capturing_ = true;
    try {
      work();
    } catch (...) {
      is_capturing_ = false;
      throw;
    }
    is_capturing_ = false;
    return std::make_unique<Done>();
  }

 private:
  class Done final : public DeviceGraph {
    void replay() override {}
  };

  class RefusesReads final : public Kernels {
   public:
    explicit RefusesReads(const CapturingRuntime& of) : of_(of) {}

    void fill(Stream& stream, const Span& target, double value) override {
      to().fill(stream, target, value);
    }
    void copy(Stream& stream, const Span& target, const Span& source, double factor) override {
      to().copy(stream, target, source, factor);
    }
    void add(Stream& stream, const Span& target, const Span& source, double factor) override {
      to().add(stream, target, source, factor);
    }
    void scale(Stream& stream, const Span& target, double factor) override {
      to().scale(stream, target, factor);
    }
    void divide(Stream& stream, const Span& target, double divisor) override {
      to().divide(stream, target, divisor);
    }
    void add_squares(Stream& stream, const Span& target, const Span& source) override {
      to().add_squares(stream, target, source);
    }
    void count_non_finite(Stream& stream, const Span& target, const Span& source) override {
      to().count_non_finite(stream, target, source);
    }
    void adam(Stream& stream, const AdamUpdate& update) override { to().adam(stream, update); }
    void sgd(Stream& stream, const SgdUpdate& update) override { to().sgd(stream, update); }
    void clip_factor(Stream& stream, const Span& factor, const Span& squares,
                     const ClipRule& rule) override {
      to().clip_factor(stream, factor, squares, rule);
    }
    void scale_by(Stream& stream, const Span& target, const Span& factor) override {
      to().scale_by(stream, target, factor);
    }
    std::vector<double> read(Stream& stream, const Span& source) override {
      refuse();
      return to().read(stream, source);
    }
    void write(Stream& stream, const Span& target, const std::vector<double>& values) override {
      refuse();
      to().write(stream, target, values);
    }

   private:
    Kernels& to() const { return of_.inner_.kernels(); }
    void refuse() const {
      if (of_.is_capturing_) throw RuntimeFault("the host asks in the middle of a capture");
    }
    const CapturingRuntime& of_;
  };

  Runtime& inner_;
  RefusesReads kernels_;
  bool is_capturing_ = false;
};

}  // namespace zeroproof
