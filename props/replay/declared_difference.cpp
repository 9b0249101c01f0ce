#include "props/replay/declared_difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "props/replay/moment.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

struct Declared {
  std::vector<std::string> order;
  std::map<std::string, ParamRecord> by_name;
};

Declared read_declared(const std::string& path) {
  Declared declared;
  std::vector<std::string> ignored;
  NameTable names;
  auto reader = TraceReader::open(path, names);
  while (reader) {
    const auto record = reader->next();
    if (!record || *record == nullptr) break;
    if (const auto* param = std::get_if<ParamRecord>(&(*record)->body)) {
      declared.order.push_back(param->name);
      declared.by_name[param->name] = *param;
    } else if (const auto* wrapper = std::get_if<WrapperRecord>(&(*record)->body)) {
      ignored.insert(ignored.end(), wrapper->ignored.begin(), wrapper->ignored.end());
    } else if (const HookEvent* event = (*record)->event();
               event != nullptr && event->kind == EventKind::mark && !event->param.is_none()) {
      const std::string_view label = names.text(event->name);
      const auto known = declared.by_name.find(std::string(names.text(event->param)));
      if (label.starts_with("requires_grad:") && known != declared.by_name.end())
        known->second.requires_grad = label.ends_with("true");
    }
  }
  for (const std::string& name : ignored) {
    declared.by_name.erase(name);
    std::erase(declared.order, name);
  }
  return declared;
}

// Names by what is different about them.
struct DeclaredDifferences {
  std::vector<std::string> lacking;
  std::vector<std::string> added;
  std::vector<std::string> frozen;
  std::vector<std::string> trained;
  std::vector<std::string> reshaped;

  std::string text() const {
    std::vector<std::string> parts;
    const auto add = [&](const std::vector<std::string>& names, std::string_view words) {
      if (!names.empty()) parts.push_back(fmt::format("{} {}", listed(names, 3), words));
    };
    add(lacking, "missing");
    add(added, "in addition");
    add(frozen, "frozen");
    add(trained, "trained");
    add(reshaped, "of another shape or type");
    return fmt::format("{}", fmt::join(parts, "; "));
  }
  std::string first() const {
    for (const auto* names : {&lacking, &added, &frozen, &trained, &reshaped})
      if (!names->empty()) return names->front();
    return {};
  }
};

}  // namespace

DeclaredDifference declared_difference(const std::string& reference, const std::string& odd,
                                       bool compares_all) {
  const Declared theirs = read_declared(reference);
  const Declared mine = read_declared(odd);
  DeclaredDifferences found;
  for (const auto& [name, param] : theirs.by_name) {
    const auto same = mine.by_name.find(name);
    if (same == mine.by_name.end()) {
      if (compares_all) found.lacking.push_back(name);
      continue;
    }
    if (param.requires_grad != same->second.requires_grad)
      (param.requires_grad ? found.frozen : found.trained).push_back(name);
    const bool is_alike = param.shape == same->second.shape && param.dtype == same->second.dtype;
    if (compares_all && !is_alike) found.reshaped.push_back(name);
  }
  for (const auto& [name, param] : mine.by_name)
    if (compares_all && !theirs.by_name.contains(name)) found.added.push_back(name);
  DeclaredDifference difference{found.text(), found.first()};
  if (!compares_all || !difference.text.empty() || mine.order == theirs.order) return difference;
  std::size_t at = 0;
  const std::size_t shorter = std::min(mine.order.size(), theirs.order.size());
  while (at < shorter && mine.order[at] == theirs.order[at]) ++at;
  if (at == shorter) return difference;  // one only declares some again
  return {fmt::format("{} stands where {} should, so that values are reduced with those of another "
                      "parameter",
                      mine.order[at], theirs.order[at]),
          mine.order[at]};
}

}  // namespace zeroproof
