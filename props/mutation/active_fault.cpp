#include "props/mutation/active_fault.h"

#include "model/check.h"

namespace zeroproof::mutation {
namespace {

using StateKey = std::pair<const void*, std::string>;

// By object and name; the order of addresses reaches no output.
thread_local std::map<StateKey, std::shared_ptr<void>> states;
thread_local int open_scopes = 0;

}  // namespace

namespace detail {

constinit thread_local int active_fault = 0;

std::shared_ptr<void>& kept_state(const void* object, std::string_view name) {
  ZP_CHECK(open_scopes > 0, "a fault keeps state inside a FaultScope");
  return states[StateKey(object, name)];
}

}  // namespace detail

FaultScope::FaultScope(int number) : outer_(detail::active_fault), is_outermost_(open_scopes == 0) {
  ++open_scopes;
  detail::active_fault = number;
}

FaultScope::~FaultScope() {
  detail::active_fault = outer_;
  --open_scopes;
  if (is_outermost_) states.clear();
}

}  // namespace zeroproof::mutation
