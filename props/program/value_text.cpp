#include "props/program/value_text.h"

#include <cctype>

namespace zeroproof::program {

std::string class_name(std::string_view name) {
  std::string result;
  bool begins_word = true;
  for (const char c : name) {
    if (c != '_') result += begins_word ? static_cast<char>(std::toupper(c)) : c;
    begins_word = c == '_';
  }
  return result;
}

std::vector<std::string> module_arguments(const ModuleList& modules) {
  std::vector<std::string> arguments;
  for (const Module& module : modules) {
    const auto call = [](const auto& kind) { return shown(kind); };
    arguments.push_back(fmt::format("{}={}", module.name, std::visit(call, module.kind)));
  }
  return arguments;
}

std::string shown(const ModuleList& modules) {
  return fmt::format("Sequential({})", fmt::join(module_arguments(modules), ", "));
}

}  // namespace zeroproof::program
