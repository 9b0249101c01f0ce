#include "props/report/web_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/check.h"

namespace zeroproof {

std::string_view web_file(std::string_view name) {
  const auto files = web_files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const WebFile& file) { return file.name == name; });
  ZP_CHECK(found != files.end(), "no file of props/report/web: " + std::string(name));
  return found->text;
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// The policy forbids every fetch: what is not in the file cannot come from elsewhere.
std::string html_document(std::string_view title, std::string_view style, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escape_html(title), style, body);
}

}  // namespace zeroproof
