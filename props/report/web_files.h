#pragma once

#include <span>
#include <string>
#include <string_view>

namespace zeroproof {

// A file of props/report/web, built into the binary. Static.
struct WebFile {
  std::string_view name;  // "page.css"
  std::string_view text;
};

// All of them, by name.
std::span<const WebFile> web_files();

// The text of the file that has this name; a mistake of ours when there is none.
std::string_view web_file(std::string_view name);

// A self-contained document: head with this title and style, then the body.
std::string html_document(std::string_view title, std::string_view style, std::string_view body);

// Text inside HTML, also in quoted attributes.
std::string escape_html(std::string_view text);

}  // namespace zeroproof
