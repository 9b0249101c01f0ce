#pragma once

#include <memory>

#include "props/train/runtime_decorator.h"
#include "zeroproof/engine/runtime/runtime.h"

namespace zeroproof::mutation {

using train::RuntimeDecorator;

// What RuntimeDecorator is, for one process group.
class GroupDecorator : public ProcessGroup {
 public:
  explicit GroupDecorator(ProcessGroup& inner) : inner_(inner) {}

  GroupKind kind() const override { return inner_.kind(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::vector<int>& ranks() const override { return inner_.ranks(); }
  Work all_reduce(Stream& stream, Span data, ReduceOp op) override {
    return inner_.all_reduce(stream, data, op);
  }
  Work reduce(Stream& stream, Span data, int root, ReduceOp op) override {
    return inner_.reduce(stream, data, root, op);
  }
  Work reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op) override {
    return inner_.reduce_scatter(stream, output, input, op);
  }
  Work all_gather(Stream& stream, Span output, Span input) override {
    return inner_.all_gather(stream, output, input);
  }
  Work broadcast(Stream& stream, Span data, int root) override {
    return inner_.broadcast(stream, data, root);
  }
  Work barrier(Stream& stream) override { return inner_.barrier(stream); }
  bool compares_contents() const override { return inner_.compares_contents(); }
  void announce(std::span<const ContentPart> parts) override { inner_.announce(parts); }
  void begin_batch() override { inner_.begin_batch(); }
  void end_batch() override { inner_.end_batch(); }
  void wait(Work work, Stream& stream) override { inner_.wait(work, stream); }
  bool is_completed(Work work) override { return inner_.is_completed(work); }
  void abort(const std::string& reason) override { inner_.abort(reason); }

 protected:
  ProcessGroup& inner() { return inner_; }

 private:
  ProcessGroup& inner_;
};

// B21: gradients are reduced over a group of this rank alone.
std::unique_ptr<Runtime> reduce_over_one_rank(Runtime& runtime);
// E11: a second group meets before a sum on some ranks and after it on others.
std::unique_ptr<Runtime> cross_groups(Runtime& runtime);

}  // namespace zeroproof::mutation
