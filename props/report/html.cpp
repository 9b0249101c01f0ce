#include "props/report/html.h"

#include <fmt/format.h>

#include <vector>

#include "props/report/web_files.h"
#include "sim/trace/gzip.h"
#include "sim/trace/json_object.h"

namespace zeroproof {
namespace {

// In the order in which they need one another.
constexpr std::string_view kScripts[] = {"data.js",   "theme.js",    "view.js", "draw.js",
                                         "panels.js", "controls.js", "main.js"};

std::string_view track_kind_name(PictureTrackKind kind) {
  constexpr std::string_view kNames[] = {"thread", "collectives", "gathers", "buckets"};
  return kNames[static_cast<std::size_t>(kind)];
}

// A column of a table: one number a row.
template <class Rows, class Value>
void add_column(JsonObject& table, std::string_view name, const Rows& rows, Value value) {
  std::vector<std::int64_t> column;
  column.reserve(rows.size());
  for (const auto& row : rows) column.push_back(static_cast<std::int64_t>(value(row)));
  table.set(name, column);
}

// The same as differences, which are short and compress well.
template <class Rows, class Value>
void add_differences(JsonObject& table, std::string_view name, const Rows& rows, Value value) {
  std::int64_t before = 0;
  add_column(table, name, rows, [&](const auto& row) {
    const auto now = static_cast<std::int64_t>(value(row));
    const std::int64_t difference = now - before;
    before = now;
    return difference;
  });
}

void append_processes(const Picture& picture, std::string& out) {
  out += '[';
  for (const PictureProcess& process : picture.processes) {
    if (out.back() != '[') out += ',';
    JsonObject object(out);
    object.set("title", process.title);
    std::string& facts = object.key("facts");
    facts += '[';
    for (const auto& [key, value] : process.facts) {
      if (facts.back() != '[') facts += ',';
      append_json(std::vector<std::string>{key, value}, facts);
    }
    facts += ']';
    object.close();
  }
  out += ']';
}

void append_tracks(const Picture& picture, std::string& out) {
  out += '[';
  for (const PictureTrack& track : picture.tracks) {
    if (out.back() != '[') out += ',';
    JsonObject(out)
        .set("process", track.process)
        .set("kind", track_kind_name(track.kind))
        .set("name", track.name)
        .set("rows", track.rows)
        .close();
  }
  out += ']';
}

void append_events(const Picture& picture, std::string& out) {
  const auto& events = picture.events;
  JsonObject table(out);
  add_differences(table, "lc", events, [](const PictureEvent& e) { return e.lc; });
  add_differences(table, "tick", events, [](const PictureEvent& e) { return e.tick; });
  add_differences(table, "time", events, [](const PictureEvent& e) { return e.time_ns; });
  add_column(table, "track", events, [](const PictureEvent& e) { return e.track; });
  add_column(table, "row", events, [](const PictureEvent& e) { return e.row; });
  add_column(table, "moment", events, [](const PictureEvent& e) { return e.is_moment; });
  add_column(table, "category", events, [](const PictureEvent& e) { return e.category; });
  add_column(table, "kind", events, [](const PictureEvent& e) { return e.kind; });
  add_column(table, "words", events, [](const PictureEvent& e) { return e.words; });
  table.close();
}

void append_bars(const Picture& picture, std::string& out) {
  const auto& bars = picture.bars;
  JsonObject table(out);
  add_column(table, "begin", bars, [](const PictureBar& b) { return b.begin; });
  add_column(table, "end", bars, [](const PictureBar& b) { return b.end; });
  add_column(table, "track", bars, [](const PictureBar& b) { return b.track; });
  add_column(table, "row", bars, [](const PictureBar& b) { return b.row; });
  add_column(table, "category", bars, [](const PictureBar& b) { return b.category; });
  add_column(table, "label", bars, [](const PictureBar& b) { return b.label; });
  add_column(table, "peer", bars, [](const PictureBar& b) { return b.peer; });
  add_column(table, "open", bars, [](const PictureBar& b) { return b.is_open; });
  add_column(table, "is_faint", bars, [](const PictureBar& b) { return b.is_faint; });
  table.close();
}

void append_findings(const Picture& picture, std::string& out) {
  out += '[';
  for (const PictureFinding& finding : picture.findings) {
    if (out.back() != '[') out += ',';
    JsonObject(out)
        .set("event", finding.event)
        .set("number", finding.number)
        .set("id", finding.id)
        .set("statement", finding.statement)
        .set("text", finding.text)
        .set("where", finding.where)
        .set("is_latent", finding.is_latent)
        .close();
  }
  out += ']';
}

// One line of JSON, then the fields of each event in a line.
std::string document(const Picture& picture) {
  std::string out;
  JsonObject object(out);
  object.set("title", picture.title).set("note", picture.note).set("good", picture.good);
  object.set("source", picture.source);
  object.set("reproduce", picture.reproduce).set("has_time", picture.has_time);
  object.set("strings", picture.strings);
  std::vector<std::string_view> categories;
  for (std::size_t i = 0; i < kPictureCategories; ++i) {
    categories.push_back(picture_category_name(static_cast<PictureCategory>(i)));
  }
  object.set("categories", categories);
  append_processes(picture, object.key("processes"));
  append_tracks(picture, object.key("tracks"));
  append_events(picture, object.key("events"));
  append_bars(picture, object.key("bars"));
  std::vector<std::vector<std::uint32_t>> links;
  for (const auto& [cause, effect] : picture.links) links.push_back({cause, effect});
  object.set("links", links);
  append_findings(picture, object.key("findings"));
  object.close();
  for (const PictureEvent& event : picture.events) {
    out += '\n';
    out += event.fields;
  }
  return out;
}

std::string compressed(const std::string& text) {
  GzipCompressor gzip;
  std::string bytes;
  gzip.add(text, bytes);
  gzip.finish(bytes);
  return bytes;
}

// In base64, so that no text of a trace can end the script element it stands in.
std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve(bytes.size() / 3 * 4 + 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const char c = i + k < bytes.size() ? bytes[i + k] : '\0';
      group = group << 8 | static_cast<unsigned char>(c);
    }
    const std::size_t digits = bytes.size() - i < 3 ? bytes.size() - i + 1 : 4;
    for (std::size_t k = 0; k < 4; ++k) {
      text += k < digits ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

}  // namespace

std::string packed_text(const std::string& text) {
  return base64(compressed(text));
}

std::string picture_html(const Picture& picture) {
  std::string body(web_file("page.html"));
  body += "<script id=\"picture\" type=\"application/gzip\">" + packed_text(document(picture)) +
          "</script>\n<script>\n(() => {\n\"use strict\";\n";
  for (const std::string_view script : kScripts) body += web_file(script);
  body += "})();\n</script>\n";
  return html_document(picture.title, web_file("page.css"), body);
}

}  // namespace zeroproof
