#include "engine/runtime/host/host_stream.h"

#include "model/check.h"

namespace zeroproof::host {

StreamEvent HostStream::record() {
  const StreamEvent event{log_.events++};
  if (log_.observer) log_.observer->on_record(id_, event);
  return event;
}

void HostStream::wait(StreamEvent event) {
  check_recorded(event);
  if (log_.observer) log_.observer->on_wait(id_, event);
}

bool HostStream::query(StreamEvent event) {
  check_recorded(event);
  return true;
}

void HostStream::synchronize(StreamEvent event) {
  check_recorded(event);
  if (log_.observer) log_.observer->on_host_wait(event);
}

void HostStream::record_use(const Tensor& tensor) {
  ZP_CHECK(tensor.is_defined(), "use of an undefined tensor recorded");
  if (log_.observer) log_.observer->on_record_use(id_, tensor.impl());
}

void HostStream::check_recorded(StreamEvent event) const {
  ZP_CHECK(event.value >= 0 && event.value < log_.events, "an event that no stream recorded");
}

Stream& HostStreams::user(StreamIndex index) {
  ZP_CHECK(index >= 0, "a user stream with a negative number");
  const auto last_role = static_cast<std::int32_t>(StreamRole::offload);
  return index == 0 ? of(StreamRole::compute) : at(last_role + index);
}

Stream& HostStreams::at(std::int32_t id) {
  return streams_.try_emplace(id, StreamId{id}, log_).first->second;
}

}  // namespace zeroproof::host
