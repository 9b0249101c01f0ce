#include "props/reference/scene.h"
#include "props/reference/methods.h"

#include <algorithm>

namespace zeroproof::reference {
namespace {

// Moments: they have no return (docs/reference/trace_format.md section 14).
bool is_moment(std::string_view method) {
  const bool is_guarded = method.starts_with("fallback.") && method != "fallback.guard";
  return is_guarded || method.starts_with(calls::kAddExternal);
}

}  // namespace

void Scene::before(const HookEvent& event) {
  if (event.kind == EventKind::gt_begin) tasks_.push_back(event.call);
  if (event.kind != EventKind::engine_call || is_moment(names_.text(event.name))) return;
  calls_.push_back({.method = std::string(names_.text(event.name)), .param = event.param});
}

// A call whose begin has failed has no return: it ends with the one around it.
void Scene::after(const HookEvent& event) {
  if (event.kind == EventKind::gt_end) {
    const auto at = std::find(tasks_.rbegin(), tasks_.rend(), event.call);
    if (at != tasks_.rend()) tasks_.erase(std::prev(at.base()), tasks_.end());
  }
  if (event.kind != EventKind::engine_return) return;
  const std::string_view method = names_.text(event.name);
  const auto is_it = [&](const Call& call) { return call.method == method; };
  const auto at = std::find_if(calls_.rbegin(), calls_.rend(), is_it);
  if (at != calls_.rend()) calls_.erase(std::prev(at.base()), calls_.end());
}

bool Scene::is_in(std::string_view method) const {
  return std::ranges::any_of(calls_, [&](const Call& call) { return call.method == method; });
}

bool Scene::is_in_any(std::string_view prefix) const {
  return std::ranges::any_of(calls_, [&](const Call& call) {
    return call.method != calls::kContext && call.method.starts_with(prefix);
  });
}

NameId Scene::param_of(std::string_view method) const {
  const auto is_it = [&](const Call& call) { return call.method == method; };
  const auto at = std::find_if(calls_.rbegin(), calls_.rend(), is_it);
  return at == calls_.rend() ? NameId{} : at->param;
}

}  // namespace zeroproof::reference
