#include "tests/peer/support/faulty_runtime.h"

#include <algorithm>

namespace zeroproof::peer {
namespace {

constexpr std::array<std::string_view, 7> kFaults = {
    "lost_reduction", "lost_gather",  "lost_broadcast", "lost_accumulation",
    "lost_update",    "lost_scaling", "lost_read"};

class FaultyGroup final : public ProcessGroup {
 public:
  FaultyGroup(ProcessGroup& inner, Kernels& kernels, const std::string& fault)
      : inner_(inner), kernels_(kernels), fault_(fault) {}

  GroupKind kind() const override { return inner_.kind(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::vector<int>& ranks() const override { return inner_.ranks(); }

  Work all_reduce(Stream& stream, Span data, ReduceOp op) override {
    if (loses_reduction() && op == ReduceOp::sum) return inner_.barrier(stream);
    return inner_.all_reduce(stream, data, op);
  }
  Work reduce(Stream& stream, Span data, int root, ReduceOp op) override {
    if (loses_reduction()) return inner_.barrier(stream);
    return inner_.reduce(stream, data, root, op);
  }
  Work reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op) override {
    if (!loses_reduction()) return inner_.reduce_scatter(stream, output, input, op);
    kernels_.copy(stream, output, input.part(rank() * output.elements, output.elements));
    return inner_.barrier(stream);
  }
  Work all_gather(Stream& stream, Span output, Span input) override {
    if (fault_ != "lost_gather") return inner_.all_gather(stream, output, input);
    for (int rank = 0; rank < size(); ++rank)
      kernels_.copy(stream, output.part(rank * input.elements, input.elements), input);
    return inner_.barrier(stream);
  }
  Work broadcast(Stream& stream, Span data, int root) override {
    if (fault_ == "lost_broadcast") return inner_.barrier(stream);
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

 private:
  bool loses_reduction() const { return fault_ == "lost_reduction"; }

  ProcessGroup& inner_;
  Kernels& kernels_;
  std::string fault_;
};

class FaultyKernels final : public Kernels {
 public:
  FaultyKernels(Kernels& inner, const std::string& fault) : inner_(inner), fault_(fault) {}

  void fill(Stream& stream, const Span& target, double value) override {
    inner_.fill(stream, target, value);
  }
  void copy(Stream& stream, const Span& target, const Span& source, double factor) override {
    inner_.copy(stream, target, source, fault_ == "lost_scaling" ? 1.0 : factor);
  }
  void add(Stream& stream, const Span& target, const Span& source, double factor) override {
    if (fault_ != "lost_accumulation") inner_.add(stream, target, source, factor);
  }
  void scale(Stream& stream, const Span& target, double factor) override {
    if (fault_ != "lost_scaling") inner_.scale(stream, target, factor);
  }
  void divide(Stream& stream, const Span& target, double divisor) override {
    if (fault_ != "lost_scaling") inner_.divide(stream, target, divisor);
  }
  void add_squares(Stream& stream, const Span& target, const Span& source) override {
    inner_.add_squares(stream, target, source);
  }
  void count_non_finite(Stream& stream, const Span& target, const Span& source) override {
    inner_.count_non_finite(stream, target, source);
  }
  void adam(Stream& stream, const AdamUpdate& update) override {
    if (fault_ != "lost_update") inner_.adam(stream, update);
  }
  void sgd(Stream& stream, const SgdUpdate& update) override {
    if (fault_ != "lost_update") inner_.sgd(stream, update);
  }
  // By the calls above and below, so that their faults are in these too.
  void clip_factor(Stream& stream, const Span& factor, const Span& squares,
                   const ClipRule& rule) override {
    Kernels::clip_factor(stream, factor, squares, rule);
  }
  void scale_by(Stream& stream, const Span& target, const Span& factor) override {
    Kernels::scale_by(stream, target, factor);
  }
  std::vector<double> read(Stream& stream, const Span& source) override {
    if (fault_ == "lost_read")
      return std::vector<double>(static_cast<std::size_t>(source.elements));
    return inner_.read(stream, source);
  }
  void write(Stream& stream, const Span& target, const std::vector<double>& values) override {
    inner_.write(stream, target, values);
  }

 private:
  Kernels& inner_;
  std::string fault_;
};

}  // namespace

bool is_seam_fault(const std::string& fault) {
  return std::ranges::find(kFaults, fault) != kFaults.end();
}

FaultyRuntime::FaultyRuntime(Runtime& inner, const std::string& fault)
    : inner_(inner), kernels_(std::make_unique<FaultyKernels>(inner.kernels(), fault)) {
  for (std::size_t i = 0; i < groups_.size(); ++i)
    groups_[i] =
        std::make_unique<FaultyGroup>(inner.group(static_cast<GroupKind>(i)), *kernels_, fault);
}

FaultyRuntime::~FaultyRuntime() = default;

}  // namespace zeroproof::peer
