#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "props/reference/findings.h"
#include "props/reference/scene.h"
#include "props/reference/world.h"

namespace zeroproof::reference {

// Rows of a world's tables by the names that events have.
class NameIndex {
 public:
  // Both must outlive it.
  NameIndex(const World& world, const NameTable& names) : world_(world), names_(names) {}

  std::optional<std::size_t> parameter(NameId name);
  std::optional<std::size_t> module(NameId name);

 private:
  using Known = std::map<NameId, std::optional<std::size_t>>;

  template <class Rows>
  std::optional<std::size_t> find(NameId name, const Rows& rows, Known& known);

  const World& world_;
  const NameTable& names_;
  Known parameters_;
  Known modules_;
};

// What the parts of one engine's walker share. All must outlive them.
struct Surroundings {
  const World& world;
  const NameTable& names;
  NameIndex& index;
  Ledger& ledger;
  const Scene& scene;
};

// One subject of the reference: follows the events of one engine and writes what breaks a rule.
class Part {
 public:
  explicit Part(const Surroundings& around)
      : world_(around.world),
        names_(around.names),
        index_(around.index),
        ledger_(around.ledger),
        scene_(around.scene) {}
  virtual ~Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  virtual void on_event(const HookEvent& event) = 0;
  // After the last event. `is_complete`: the program came to its end.
  virtual void finish(bool /*is_complete*/) {}

 protected:
  std::string_view text(NameId name) const { return names_.text(name); }
  const Parameter& parameter(std::size_t id) const { return world_.parameters[id]; }
  const ZeroConfig& config() const { return world_.config; }

  const World& world_;
  const NameTable& names_;
  NameIndex& index_;
  Ledger& ledger_;
  const Scene& scene_;
};

}  // namespace zeroproof::reference
