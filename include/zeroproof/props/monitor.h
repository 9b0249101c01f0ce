#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/internal/props/name_list.h"
#include "zeroproof/props/fact.h"
#include "zeroproof/props/property.h"

namespace zeroproof {

// "engine.call grad_hook l1.weight": an event in a few words.
std::string describe_event(const HookEvent& event, const NameTable& names);

// Where a finding points; kept by monitors that report later than they see.
struct Place {
  std::uint64_t lc = 0;
  std::int32_t rank = 0;
  std::string event;
};

// Checks one property over one execution, fact by fact: an automaton whose memory is bounded by
// what is open. Not thread-safe.
class Monitor {
 public:
  struct Context {
    const Property* property = nullptr;  // static
    Scope scope = Scope::trace;
    const NameTable* names = nullptr;  // outlives the monitor
  };

  explicit Monitor(const Context& context) : context_(context) {}
  virtual ~Monitor() = default;

  virtual void observe(const Fact& fact) = 0;

  // The execution is over. `is_quiet`: no graph task and no engine.backward is open.
  virtual void finish(bool is_quiet) { static_cast<void>(is_quiet); }

  // Meaningful at any time; final after finish().
  Verdict verdict() const;

  bool is_falsified() const { return is_falsified_; }

  // Everything that can influence a later verdict.
  void append_state(std::string& bytes) const;

 protected:
  virtual void append_memory(std::string& bytes) const = 0;

  const Property& property() const { return *context_.property; }
  Scope scope() const { return context_.scope; }
  std::string_view text(NameId name) const { return context_.names->text(name); }
  Place place(const HookEvent& event) const;
  // "a, b, c, d, e and 4 more".
  template <class Ids>
  std::string names_of(const Ids& ids) const {
    std::vector<std::string> names;
    for (const NameId id : ids) names.emplace_back(text(id));
    return listed(names);
  }

  // The property speaks about something that occurred.
  void mark_applicable() { is_applicable_ = true; }
  void report(const Place& where, std::string what) { add(where, std::move(what), false); }
  void report_after_exception(const Place& where, std::string what) {
    add(where, std::move(what), false, true);
  }
  void report_latent(const Place& where, std::string what) { add(where, std::move(what), true); }

 private:
  void add(const Place& where, std::string what, bool is_latent, bool is_after_exception = false);

  Context context_;
  bool is_applicable_ = false;
  bool is_falsified_ = false;
  std::vector<Finding> findings_;
  std::uint64_t finding_count_ = 0;
};

using MonitorFactory = std::unique_ptr<Monitor> (*)(const Monitor::Context&);

// "engine 1" or, with one engine, the same: how findings name an engine.
std::string engine_name(EngineId engine);

// "graph task 7", or "the backward" when its id is unknown.
std::string task_name(const BackwardTally& tally);

}  // namespace zeroproof
