#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace zeroproof::mutation {

namespace detail {
extern constinit thread_local int active_fault;
std::shared_ptr<void>& kept_state(const void* object, std::string_view name);
}  // namespace detail

// The number of the fault that is active on this thread (fault_table.h); 0: none. Woven functions
// ask it which of their bodies runs.
inline int active_fault() {
  return detail::active_fault;
}

// A fault is active on this thread while the scope lives; number 0 makes code unmutated inside the
// scope of a fault. The outermost scope begins and ends with no state of faults.
class FaultScope {
 public:
  explicit FaultScope(int number);
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;

 private:
  int outer_ = 0;
  bool is_outermost_ = false;
};

// What a fault remembers beside an object, by a name of its own: a T, made when it is first asked
// for. It lives as long as this thread's outermost FaultScope, within which it may be called alone.
template <class T>
T& fault_state(const void* object, std::string_view name) {
  std::shared_ptr<void>& kept = detail::kept_state(object, name);
  if (!kept) kept = std::make_shared<T>();
  return *static_cast<T*>(kept.get());
}

}  // namespace zeroproof::mutation
