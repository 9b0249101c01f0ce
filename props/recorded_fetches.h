#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "zeroproof/internal/model/names.h"

namespace zeroproof {

// The order of fetches of one coordinator of stage 3, as its events show it
// (docs/spec/zero.md 3.5): recorded in one pass, and followed in the passes after it until the
// trace is given up.
class RecordedFetches {
 public:
  using Fetch = std::pair<NameId, bool>;  // module, is_forward

  // coord.reset_step. Whether the pass that ends here was recorded, and is followed from now on.
  bool begin_pass();
  void add(const Fetch& fetch) {
    if (current_.size() < kFetchesMax) current_.push_back(fetch);
  }
  void invalidate() { is_invalid_ = true; }

  bool is_recording() const { return is_recording_; }
  const std::vector<Fetch>& recorded() const { return recorded_; }  // empty: none
  const std::vector<Fetch>& current() const { return current_; }    // of the running pass

  void append_state(std::string& bytes) const;

 private:
  static constexpr std::size_t kFetchesMax = 1 << 16;

  std::vector<Fetch> recorded_;
  std::vector<Fetch> current_;
  bool is_recording_ = false;
  bool is_invalid_ = false;
};

}  // namespace zeroproof
