#pragma once

#include <optional>

#include "zeroproof/internal/model/local_state.h"

namespace zeroproof {

class Autograd;

// What torch.autocast takes; what is missing stays as it is around the region.
struct AutocastOptions {
  bool is_enabled = true;
  std::optional<DType> dtype = std::nullopt;
  std::optional<bool> is_cache_enabled = std::nullopt;
};

// A `with torch.autocast(device)` region of the current thread (rules M1 to M3). Whether it is on
// and its dtype travel with graph tasks, its cache flag does not (docs/spec/autograd.md 15).
// Leaving the outermost region of any thread drops the cached casts of the process. On the CPU only
// bfloat16 and float16 can be on. Regions are left in reverse order, on the thread that entered
// them.
class Autocast {
 public:
  Autocast(Autograd& autograd, DeviceType device, const AutocastOptions& options = {});
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  Autograd& autograd_;
  DeviceType device_;
  AutocastSetting setting_before_;
  bool was_cache_enabled_;
};

// What a checkpoint remembers of the regions around its forward (rule M3).
struct AutocastStash {
  AutocastOptions accelerator;
  AutocastOptions cpu;
};

AutocastStash stash_autocast(Autograd& autograd);

// The remembered regions again, around a recompute.
class AutocastReentry {
 public:
  AutocastReentry(Autograd& autograd, const AutocastStash& stash)
      : accelerator_(autograd, DeviceType::accelerator, stash.accelerator),
        cpu_(autograd, DeviceType::cpu, stash.cpu) {}

 private:
  Autocast accelerator_;
  Autocast cpu_;
};

}  // namespace zeroproof
