#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/hook_order/collective_table.h"
#include "zeroproof/engine/runtime/runtime.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof::hook_order {

class Device;

// Where the work of a rank goes, and what is counted.
struct Surroundings {
  CollectiveTable& board;
  IncrementalHash& facts;
  std::uint64_t events = 0;  // seam calls, and decisions of the explorer
};

// Reached by the compute stream after a backward: what the optimizer would read is read.
class BackwardObserver {
 public:
  virtual ~BackwardObserver() = default;
  virtual void on_backward_done(std::uint32_t rank, std::uint32_t pass) = 0;
  virtual void on_race(std::uint32_t rank) = 0;
};

enum class WorkKind : std::uint8_t { copy, add, fill, wait, collective, done };

struct Task {
  WorkKind kind = WorkKind::done;
  Cells target = {};
  Cells source = {};
  double value = 0.0;
};

// Something queued on a stream. Its memory lives as long as it does.
struct QueuedWork {
  Task task;
  StreamEvent event;         // wait
  std::uint32_t number = 0;  // collective, or the pass that is done
  std::shared_ptr<Storage> target_owner = {};
  std::shared_ptr<Storage> source_owner = {};
};

// A queue of the simulated device. Work runs at once unless something before it waits: for an
// event, or for a collective, whose completion is a choice. So only choices take time.
class DeviceStream final : public Stream {
 public:
  using Stream::wait;
  DeviceStream(Device& device, CollectiveTable& board, std::uint32_t index)
      : device_(device), board_(board), index_(index) {}

  StreamId id() const override { return StreamId{static_cast<std::int32_t>(index_)}; }
  StreamEvent record() override;
  void wait(StreamEvent event) override;
  bool query(StreamEvent event) override;
  // Never blocks: the rank's later work waits instead, and the rank takes no step before.
  void synchronize(StreamEvent event) override;
  void record_use(const Tensor&) override;

  std::uint32_t index() const { return index_; }
  bool is_idle() const { return head_ == size_; }
  // Work that ran at once, because no work waits here.
  void skip() {
    ++pushed_;
    ++done_;
  }
  // Queues it: to be given the rest, then start(). By values, as what is stored in halves and
  // loaded whole makes the processor wait.
  QueuedWork& push(WorkKind kind, Cells target = {}, Cells source = {}, double value = 0.0);
  void start();    // runs what was pushed last, unless something is before it or holds it up
  bool advance();  // runs what can run; whether anything did
  // The collective at the head has arrived: may it complete?
  bool can_complete() const { return has_arrived_ && board_.can_complete(queue_[head_].number); }
  void complete_collective();
  void clear();  // what is queued never runs

  std::uint64_t done() const { return done_; }
  // Whether the cells are used by work without an order to work that runs now.
  bool overlaps(const Cells& cells, bool is_write) const;
  // Which of at most 64 cells something queued will replace, a bit each.
  std::uint64_t will_replace(const double* first, std::int64_t count) const;
  // Of what is queued, in its order; waits that are over do not count.
  std::uint64_t pending_hash() const;

 private:
  bool run_head();
  void drop_head();
  void forget_queue();
  static std::uint64_t hash_of(const QueuedWork& work);

  Device& device_;
  CollectiveTable& board_;
  std::uint32_t index_;  // of the rank's streams
  struct Replaced {
    const double* begin = nullptr;
    const double* end = nullptr;
  };
  std::vector<QueuedWork> queue_;   // of which size_ are in use
  std::vector<Replaced> replaced_;  // by each of queue_; side by side, as they are looked through
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  bool has_arrived_ = false;  // the head is a collective, and stands on the board
  std::uint64_t pushed_ = 0;
  std::uint64_t done_ = 0;
};

class DeviceKernels final : public Kernels {
 public:
  explicit DeviceKernels(Device& device) : device_(device) {}
  void fill(Stream& stream, const Span& target, double value) override;
  void copy(Stream& stream, const Span& target, const Span& source, double factor) override;
  void add(Stream& stream, const Span& target, const Span& source, double factor) override;
  // Contributions are sets: what scales numbers leaves them alone.
  void scale(Stream& stream, const Span& target, double factor) override;
  void divide(Stream& stream, const Span& target, double divisor) override;
  void add_squares(Stream&, const Span&, const Span&) override {}
  void count_non_finite(Stream&, const Span&, const Span&) override {}
  void adam(Stream&, const AdamUpdate&) override {}
  void sgd(Stream&, const SgdUpdate&) override {}
  void clip_factor(Stream& stream, const Span& factor, const Span& squares,
                   const ClipRule& rule) override {
    Kernels::clip_factor(stream, factor, squares, rule);
  }
  void scale_by(Stream& stream, const Span& target, const Span& factor) override {
    Kernels::scale_by(stream, target, factor);
  }
  std::vector<double> read(Stream& stream, const Span& source) override;
  void write(Stream& stream, const Span& target, const std::vector<double>& values) override;

 private:
  Device& device_;
};

class DeviceGroup final : public ProcessGroup {
 public:
  DeviceGroup(Device& device, GroupKind kind, std::vector<int> ranks, int rank)
      : device_(device), kind_(kind), ranks_(std::move(ranks)), rank_(rank) {}

  GroupKind kind() const override { return kind_; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const override { return ranks_; }
  Work all_reduce(Stream& stream, Span data, ReduceOp op) override;
  Work reduce(Stream& stream, Span data, int root, ReduceOp op) override;
  Work reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op) override;
  Work all_gather(Stream& stream, Span output, Span input) override;
  Work broadcast(Stream& stream, Span data, int root) override;
  Work barrier(Stream& stream) override;
  bool compares_contents() const override { return ranks_.size() > 1; }
  void announce(std::span<const ContentPart> parts) override;
  void begin_batch() override {}
  void end_batch() override {}
  void wait(Work work, Stream& stream) override;
  bool is_completed(Work work) override;
  void abort(const std::string&) override {}

 private:
  Work issue(Stream& stream, CollectiveKind kind, Span output, Span input, int root = 0);

  Device& device_;
  GroupKind kind_;
  std::vector<int> ranks_;
  int rank_;
};

}  // namespace zeroproof::hook_order
