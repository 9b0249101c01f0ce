#pragma once

#include <cstdint>
#include <map>

#include "zeroproof/internal/engine/runtime/access.h"
#include "zeroproof/internal/engine/runtime/stream.h"
#include "zeroproof/model/device.h"

namespace zeroproof::host {

// What the streams of one rank share.
struct StreamLog {
  AccessObserver* observer = nullptr;
  std::int64_t events = 0;

  void read(const Stream& stream, Span span) const { note(stream, span, false); }
  void write(const Stream& stream, Span span) const { note(stream, span, true); }

 private:
  void note(const Stream& stream, Span span, bool is_write) const {
    if (observer && !span.is_empty()) observer->on_access({span, stream.id(), is_write});
  }
};

// Work runs when it is queued, so every event lies in the past. `log` must outlive it.
class HostStream final : public Stream {
 public:
  HostStream(StreamId id, StreamLog& log) : id_(id), log_(log) {}
  using Stream::synchronize;
  using Stream::wait;

  StreamId id() const override { return id_; }
  StreamEvent record() override;
  void wait(StreamEvent event) override;
  bool query(StreamEvent event) override;
  void synchronize(StreamEvent event) override;
  void record_use(const Tensor& tensor) override;

 private:
  void check_recorded(StreamEvent event) const;

  StreamId id_;
  StreamLog& log_;
};

// The streams of one rank, made on first use: compute is user stream 0, then the other roles,
// then the other user streams.
class HostStreams {
 public:
  explicit HostStreams(AccessObserver* observer) : log_{observer, 0} {}
  HostStreams(const HostStreams&) = delete;
  HostStreams& operator=(const HostStreams&) = delete;

  StreamLog& log() { return log_; }
  Stream& of(StreamRole role) { return at(static_cast<std::int32_t>(role)); }
  Stream& user(StreamIndex index);

 private:
  Stream& at(std::int32_t id);

  StreamLog log_;
  std::map<std::int32_t, HostStream> streams_;
};

}  // namespace zeroproof::host
