#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/conform/deepspeed_recording.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Takes down the events of one rank's engines, as the recorder of DeepSpeed does: an engine with
// a name of its own has it before the names of its parameters and modules, and collectives are
// numbered for all engines together, without those that the recorder did not look at.
class DeepspeedSink final : public EventSink {
 public:
  // Both must outlive it.
  DeepspeedSink(DeepspeedRecording& recording, NameTable& names)
      : recording_(recording), names_(names) {}

  // Engines in the order of their ids; empty for none.
  void add_engine(std::string name) { engines_.push_back(std::move(name)); }
  // While paused no event is taken, and collectives do not count.
  void set_paused(bool is_paused) { is_paused_ = is_paused; }

  void on_event(const HookEvent& event) override;

 private:
  struct Group {
    NameId name;
    std::int64_t next = 0;
  };
  struct Issued {
    EngineId engine;
    NameId group;
    std::int64_t own = 0;  // the engine's number
    std::int64_t number = 0;
  };

  void rename(HookEvent& event) const;
  void renumber(HookEvent& event);
  Group& group(NameId name);

  DeepspeedRecording& recording_;
  NameTable& names_;
  std::vector<std::string> engines_;
  bool is_paused_ = false;
  std::vector<Group> groups_;
  std::vector<Issued> issued_;  // and not complete
};

}  // namespace zeroproof
