#include "props/recorded_fetches.h"

#include "zeroproof/model/state_bytes.h"

namespace zeroproof {

bool RecordedFetches::begin_pass() {
  bool is_followed = false;
  if (is_recording_ && !is_invalid_) {
    recorded_ = std::move(current_);
    is_recording_ = false;
    is_followed = true;
  } else if (recorded_.empty() || is_invalid_) {
    recorded_.clear();
    is_recording_ = true;
  }
  is_invalid_ = false;
  current_.clear();
  return is_followed;
}

void RecordedFetches::append_state(std::string& bytes) const {
  for (const auto* fetches : {&recorded_, &current_}) {
    append_bytes(bytes, static_cast<std::int64_t>(fetches->size()));
    for (const Fetch& fetch : *fetches)
      append_bytes(bytes, fetch.first.value * 2 + (fetch.second ? 1 : 0));
  }
  append_bytes(bytes, is_recording_);
  append_bytes(bytes, is_invalid_);
}

}  // namespace zeroproof
