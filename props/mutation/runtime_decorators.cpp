#include "props/mutation/runtime_decorators.h"

namespace zeroproof::mutation {
namespace {

// Sums of gradients stay what they are; those of decisions, which are doubles, go on.
class GroupOfOne final : public GroupDecorator {
 public:
  using GroupDecorator::GroupDecorator;

  Work all_reduce(Stream& stream, Span data, ReduceOp op) override {
    if (data.dtype() == DType::float64) return inner().all_reduce(stream, data, op);
    if (compares_contents()) announce({});
    return {};
  }
};

class LocalReductions final : public RuntimeDecorator {
 public:
  explicit LocalReductions(Runtime& inner)
      : RuntimeDecorator(inner), data_(inner.group(GroupKind::data)) {}

  ProcessGroup& group(GroupKind kind) override {
    return kind == GroupKind::data ? static_cast<ProcessGroup&>(data_)
                                   : RuntimeDecorator::group(kind);
  }

 private:
  GroupOfOne data_;
};

// A barrier of the other group, whose host waits, around every sum of this one.
class CrossedGroup final : public GroupDecorator {
 public:
  CrossedGroup(ProcessGroup& inner, ProcessGroup& other, Stream& compute)
      : GroupDecorator(inner), other_(other), compute_(compute) {}

  Work all_reduce(Stream& stream, Span data, ReduceOp op) override {
    return crossed([&] { return inner().all_reduce(stream, data, op); }, stream);
  }
  Work reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op) override {
    return crossed([&] { return inner().reduce_scatter(stream, output, input, op); }, stream);
  }

 private:
  template <class Issue>
  Work crossed(Issue issue, Stream& stream) {
    if (size() == 1) return issue();
    const bool is_first = rank() % 2 == 0;
    if (is_first) meet();
    const Work work = issue();
    if (is_first) return work;
    stream.synchronize();
    meet();
    return work;
  }
  void meet() { other_.wait(other_.barrier(compute_), compute_); }

  ProcessGroup& other_;
  Stream& compute_;
};

class CrossedGroups final : public RuntimeDecorator {
 public:
  explicit CrossedGroups(Runtime& inner)
      : RuntimeDecorator(inner),
        data_(inner.group(GroupKind::data), inner.group(GroupKind::expert_data),
              inner.stream(StreamRole::compute)) {}

  ProcessGroup& group(GroupKind kind) override {
    return kind == GroupKind::data ? static_cast<ProcessGroup&>(data_)
                                   : RuntimeDecorator::group(kind);
  }

 private:
  CrossedGroup data_;
};

}  // namespace

std::unique_ptr<Runtime> cross_groups(Runtime& runtime) {
  return std::make_unique<CrossedGroups>(runtime);
}

std::unique_ptr<Runtime> reduce_over_one_rank(Runtime& runtime) {
  return std::make_unique<LocalReductions>(runtime);
}

}  // namespace zeroproof::mutation
