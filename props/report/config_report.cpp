#include "props/report/config_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "props/report/json_values.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kMostNames = 12;  // of a line

// "config: unknown, ignored as by DeepSpeed: /a, /b and 7 more".
std::string names_line(std::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const std::size_t shown = std::min(names.size(), kMostNames);
  std::string line = fmt::format("{}: {}", what, fmt::join(std::span(names).first(shown), ", "));
  if (shown < names.size()) line += fmt::format(" and {} more", names.size() - shown);
  return line + "\n";
}

std::string note_line(const ConfigNote& note) {
  switch (note.kind) {
    case ConfigNoteKind::unknown:
      return fmt::format("{} is unknown and ignored, as by DeepSpeed; {}", note.pointer, note.text);
    case ConfigNoteKind::automatic:
      return fmt::format("{} \"auto\" became {}", note.pointer, note.text);
    case ConfigNoteKind::batch_size:
      return fmt::format("{} is not given and became {}", note.pointer, note.text);
    case ConfigNoteKind::converted:
      return fmt::format("{} is {}", note.pointer, note.text);
    case ConfigNoteKind::without_effect:
      return fmt::format("{} has no effect: it {}", note.pointer, note.text);
    case ConfigNoteKind::replaced:
      break;
  }
  return fmt::format("{} is {}", note.pointer, note.text);
}

}  // namespace

std::string config_text(const ConfigReport& report) {
  std::string text;
  std::vector<std::string> unknown;
  for (const ConfigNote& note : report.notes) {
    const bool is_listed = note.kind == ConfigNoteKind::unknown && note.text.empty();
    if (is_listed) {
      unknown.push_back(note.pointer);
    } else {
      text += fmt::format("config: {}\n", note_line(note));
    }
  }
  text += names_line("config: unknown and ignored, as by DeepSpeed", unknown);
  return text + names_line("ignored", report.ignored);
}

std::string with_config_json(const std::string& document, const ConfigReport& report) {
  if (report.path.empty()) return document;
  OrderedJson json = OrderedJson::parse(document);
  OrderedJson notes = OrderedJson::array();
  for (const ConfigNote& note : report.notes)
    notes.push_back(
        {{"kind", config_note_kind_name(note.kind)}, {"key", note.pointer}, {"text", note.text}});
  json["config"] = {{"path", report.path}, {"notes", notes}, {"ignored", report.ignored}};
  return document_text(json);
}

}  // namespace zeroproof
