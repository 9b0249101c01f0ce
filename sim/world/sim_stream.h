#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/host/host_stream.h"
#include "sim/world/meeting.h"
#include "sim/world/rank_control.h"
#include "zeroproof/internal/engine/runtime/stream.h"

namespace zeroproof::sim {

class SimStreams;

// What stands in the queue of a stream.
struct StreamWork {
  enum class Kind : std::uint8_t { kernel, record, wait, keep, collective };
  Kind kind = Kind::kernel;
  StreamEvent event;                     // of record and wait
  std::function<bool()> run = {};        // of kernel; false: its memory was gone
  std::shared_ptr<Storage> memory = {};  // of keep: not to be freed before (record_stream)
  MeetingPoint* point = nullptr;         // of collective
  Rendezvous* meeting = nullptr;
  std::size_t member = 0;
};

// A queue of device work that runs when the world says so. The streams that the autograd computes
// on run in step with the host instead: their work is done when it is queued, as the model's own
// arithmetic is, and a wait there holds the rank up. A world may have a late compute stream.
class SimStream final : public Stream {
 public:
  SimStream(StreamId id, bool is_in_step, std::string name, SimStreams& streams);
  using Stream::synchronize;
  using Stream::wait;

  StreamId id() const override { return id_; }
  StreamEvent record() override;
  void wait(StreamEvent event) override;
  bool query(StreamEvent event) override;
  void synchronize(StreamEvent event) override;
  void record_use(const Tensor& tensor) override;

  // What was given in the order of the compute stream is there before the next work here.
  void prepare(const Span& span);
  // Work here keeps its memory: it is the stream in whose order memory goes back.
  void hold(const Span& span);

  // Before every kernel. True: its caller does the work, now; false: launch() it.
  bool begin_kernel(std::int64_t elements);
  // Queues work; it returns false when its memory was gone.
  void launch(std::function<bool()> kernel);
  void push(StreamWork work);

  bool is_in_step() const { return is_in_step_; }
  bool is_empty() const { return queue_.empty(); }
  const std::string& name() const { return name_; }  // "r0.reduction"
  const StreamWork& head() const { return queue_.front(); }
  bool can_run() const;  // the head is a kernel, or a collective at which all have arrived
  void run_head();
  // Passes records that were reached and waits that are over; false: no stream moved.
  bool advance();
  void clear();
  bool will_record(StreamEvent event) const;  // it stands in the queue
  std::uint64_t runs() const { return runs_; }

 private:
  void run_collective(const StreamWork& work);

  StreamId id_;
  bool is_in_step_;
  std::string name_;
  SimStreams& streams_;
  std::deque<StreamWork> queue_;
  std::uint64_t runs_ = 0;  // heads run so far
};

// The streams and events of one rank. Streams are numbered as on the host runtime.
class SimStreams {
 public:
  // Both must outlive it; `observer` may be null.
  SimStreams(RankControl& control, AccessObserver* observer, bool is_compute_late);
  SimStreams(const SimStreams&) = delete;
  SimStreams& operator=(const SimStreams&) = delete;

  SimStream& of(StreamRole role) { return at(static_cast<std::int32_t>(role)); }
  SimStream& user(StreamIndex index);
  host::StreamLog& log() { return log_; }
  RankControl& control() { return control_; }

  StreamEvent make_event();
  bool is_reached(StreamEvent event) const;
  void reach(StreamEvent event);
  // Until no stream moves any more.
  void advance();
  // The stream at whose end `event` will be reached; null when it has been.
  const SimStream* stream_of(StreamEvent event) const;

  const std::vector<std::unique_ptr<SimStream>>& all() const { return streams_; }
  void clear();  // everything queued is lost, and every event reached

  // Where the compute stream is late: it is the one whose work may lag the host.
  bool is_late(const SimStream& stream) const;
  // The host goes on when the compute stream has run all that is queued there.
  void catch_up();

 private:
  SimStream& at(std::int32_t id);

  RankControl& control_;
  host::StreamLog log_;
  bool is_compute_late_;
  std::vector<std::unique_ptr<SimStream>> streams_;  // by id; null before first use
  std::vector<bool> reached_;                        // by event
};

}  // namespace zeroproof::sim
