// What a piece of code must leave as it found it: the user's gather context (P72), the linear
// function's weight (P75), autocast in its backward (P80).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "props/monitors.h"
#include "props/parameter_book.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

constexpr std::string_view kAddExternal = "coord.add_external:";  // and a module

// P72. The bracket z3.gathered_parameters stands around the body; its call names the parameters.
// What a module uses that is under way goes with that module (docs/spec/zero/stage3.md 3.9).
class UserContextBalanced final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const EventKind kind = fact.event->kind;
    if (fact.method == Method::gathered_parameters) {
      mark_applicable();
      if (kind == EventKind::engine_call) return enter(fact);
      return leave(fact);
    }
    if (kind == EventKind::engine_call) note_use(fact);
    if (open_.empty() || open_.back().overlap.is_none()) return;
    const bool is_effect = kind == EventKind::zparam_gather_begin ||
                           kind == EventKind::zparam_partition || kind == EventKind::coll_issue;
    open_.back().has_effect = open_.back().has_effect || is_effect;
  }

  void finish(bool) override {
    for (const Open& open : open_)
      report(open.place, fmt::format("the user context that was entered at lc {} was never left",
                                     open.place.lc));
    open_.clear();
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const Open& open : open_) {
      append_bytes(bytes, open.has_effect);
      for (const NameId param : open.params) {
        append_bytes(bytes, param.value);
        append_bytes(bytes, open.whole.contains(param));
      }
    }
  }

 private:
  struct Open {
    Place place;
    std::vector<NameId> params;
    std::set<NameId> whole;  // before it; they stay so if it cannot be entered, or for a leaf
    NameId overlap;          // a parameter that an enclosing context holds already
    bool has_effect = false;
  };

  void note_use(const Fact& fact) {
    if (fact.method == Method::fallback_gather || fact.method == Method::fallback_claim)
      held_.insert(fact.event->params.begin(), fact.event->params.end());
    if (text(fact.event->name).starts_with(kAddExternal)) held_.insert(fact.event->param);
  }

  void enter(const Fact& fact) {
    Open open{place(*fact.event), fact.event->params, {}, NameId::none(), false};
    for (const NameId param : open.params)
      if (fact.parameters->residence(param) == Residence::available) open.whole.insert(param);
    for (const Open& outer : open_)
      for (const NameId param : open.params)
        if (outer.overlap.is_none() &&
            std::find(outer.params.begin(), outer.params.end(), param) != outer.params.end())
          open.overlap = param;
    open_.push_back(std::move(open));
  }

  void leave(const Fact& fact) {
    if (open_.empty()) {
      report(place(*fact.event), fmt::format("a user context was left at lc {} that was not "
                                             "entered",
                                             fact.event->lc));
      return;
    }
    const Open open = std::move(open_.back());
    open_.pop_back();
    if (!open.overlap.is_none()) return judge_refusal(fact, open);
    for (const NameId param : open.params) {
      const bool is_gathered = fact.parameters->residence(param) == Residence::available;
      const bool is_used = !fact.parameters->holder(param).is_none();
      const bool may_be_leafs = fact.parameters->is_below_held(param);
      const bool may_stay = open.whole.contains(param) && (fact.has_raised || may_be_leafs);
      if (!is_gathered || is_used || may_stay || held_.contains(param)) continue;
      report(place(*fact.event),
             fmt::format("{} was still gathered at lc {} when the user context of lc {} had ended",
                         text(param), fact.event->lc, open.place.lc));
      return;
    }
  }

  void judge_refusal(const Fact& fact, const Open& open) {
    if (fact.has_raised && !open.has_effect) return;
    report(open.place,
           fmt::format("a user context that overlaps an open one in {} was {} at lc {}",
                       text(open.overlap),
                       fact.has_raised ? "refused after it had changed something" : "entered",
                       open.place.lc));
  }

  std::vector<Open> open_;  // contexts nest
  // By the fallback or by modules that do not own them, ever: these decide when they go.
  std::set<NameId> held_;
};

constexpr std::string_view kLinear = "linear:";  // fn label; the weight's name follows

// P75.
class LinearKeepsStatus final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    const bool is_begin = event.kind == EventKind::fn_backward_begin;
    if (!is_begin && event.kind != EventKind::fn_backward_end) return;
    const std::string_view label = text(event.name);
    if (!label.starts_with(kLinear) || !fact.parameters->is_sharded()) return;
    const Residence residence = residence_of(fact, label.substr(kLinear.size()));
    if (is_begin) {
      before_[event.name] = residence;
      return;
    }
    const auto before = before_.find(event.name);
    if (before == before_.end()) return;
    mark_applicable();
    if (before->second != residence && before->second != Residence::unknown)
      report(place(event), fmt::format("the backward of {} changed whether its weight is gathered "
                                       "at lc {}",
                                       label, event.lc));
    before_.erase(before);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [label, residence] : before_)
      append_bytes(bytes, label.value + static_cast<std::int32_t>(residence));
  }

 private:
  Residence residence_of(const Fact& fact, std::string_view weight) const {
    for (const auto& [param, known] : fact.parameters->all())
      if (text(param) == weight) return known.residence;
    return Residence::unknown;
  }

  std::map<NameId, Residence> before_;
};

// P80, of whether autocast is on: what counts in a Function's backward is the last autocast.enter
// in it, or else the state around it.
class AutocastAsInForward final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    Thread& thread = threads_[event.thread];
    switch (event.kind) {
      case EventKind::autocast_enter:
        thread.stack.push_back(event.is_enabled);
        if (!thread.backwards.empty()) thread.backwards.back().is_enabled = event.is_enabled;
        return;
      case EventKind::autocast_exit:
        if (!thread.stack.empty()) thread.stack.pop_back();
        return;
      case EventKind::fn_forward_begin:
        if (text(event.name).starts_with(kLinear)) capture(event.name, thread.is_on());
        return;
      case EventKind::fn_backward_begin:
        thread.backwards.push_back({event.name, thread.is_on()});
        return;
      case EventKind::fn_backward_end:
        return end(fact, thread);
      default:
        return;
    }
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [id, thread] : threads_) {
      append_bytes(bytes, id);
      for (const bool is_enabled : thread.stack) append_bytes(bytes, is_enabled);
      for (const Backward& open : thread.backwards) append_bytes(bytes, open.label.value);
    }
    for (const auto& [label, captured] : captured_) {
      append_bytes(bytes, captured.forwards - captured.backwards);
      for (const bool state : captured.states)
        append_bytes(bytes, label.value * 2 + (state ? 1 : 0));
    }
  }

 private:
  struct Backward {
    NameId label;
    bool is_enabled = false;
  };
  struct Captured {  // of the forwards that are outstanding; which is whose is not known
    std::set<bool> states;
    std::int32_t forwards = 0;
    std::int32_t backwards = 0;
  };
  struct Thread {
    std::vector<bool> stack;
    std::vector<Backward> backwards;
    bool is_on() const { return !stack.empty() && stack.back(); }
  };

  void capture(NameId label, bool is_on) {
    Captured& captured = captured_[label];
    if (captured.backwards >= captured.forwards) captured = Captured{};
    captured.forwards += 1;
    captured.states.insert(is_on);
  }

  void end(const Fact& fact, Thread& thread) {
    const auto open =
        std::find_if(thread.backwards.rbegin(), thread.backwards.rend(),
                     [&](const Backward& one) { return one.label == fact.event->name; });
    if (open == thread.backwards.rend()) return;
    const bool is_enabled = open->is_enabled;
    thread.backwards.erase(std::next(open).base(), thread.backwards.end());
    const auto captured = captured_.find(fact.event->name);
    if (captured == captured_.end() || fact.event->is_exceptional()) return;
    mark_applicable();
    captured->second.backwards += 1;
    if (captured->second.states.contains(is_enabled)) return;
    report(place(*fact.event),
           fmt::format("the backward of {} ran with autocast {} up to lc {}, its forward did not",
                       text(fact.event->name), is_enabled ? "on" : "off", fact.event->lc));
  }

  std::map<std::int32_t, Thread> threads_;
  std::map<NameId, Captured> captured_;  // by label
};

}  // namespace

std::unique_ptr<Monitor> make_user_context_balanced(const Monitor::Context& context) {
  return std::make_unique<UserContextBalanced>(context);
}
std::unique_ptr<Monitor> make_linear_keeps_status(const Monitor::Context& context) {
  return std::make_unique<LinearKeepsStatus>(context);
}
std::unique_ptr<Monitor> make_autocast_as_in_forward(const Monitor::Context& context) {
  return std::make_unique<AutocastAsInForward>(context);
}

}  // namespace zeroproof
