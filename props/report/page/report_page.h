#pragma once

#include <string>
#include <vector>

#include "props/replay/diagnosis.h"

namespace zeroproof {

enum class ReportMood : std::uint8_t { good, bad, open };

// One part of a report. Its HTML is made of escaped text only.
struct ReportSection {
  std::string title;
  std::string html;
};

// What every report has, in its order: what was asked, the verdict, then the parts, the cause
// first.
struct ReportFrame {
  std::string title;    // "zeroproof replay"
  std::string asked;    // the command, as it can be pasted
  std::string verdict;  // "held", "FALSIFIED"
  ReportMood mood = ReportMood::good;
  std::string summary;  // one line below
  std::string home;     // a page to go back to; may be empty
  std::vector<ReportSection> sections;
  std::string lanes;  // a whole page of lanes (picture_html), shown when it is asked for; or empty
};

// The frame as one HTML page without any other file: search, keys, light and dark, print. A row of
// a table, and an element of class "finding", is what the search shows or hides.
std::string report_page(const ReportFrame& frame);

// Pieces of HTML for the parts.
std::string html_text(std::string_view text);  // escaped, control characters made visible
std::string html_code(std::string_view text);
// A command, whose flags are not broken at a hyphen.
std::string html_command(std::string_view text);
std::string html_chip(std::string_view word, ReportMood mood);
// A table in a card; cells are HTML.
std::string html_table(const std::vector<std::string>& heads,
                       const std::vector<std::vector<std::string>>& rows);
// One entry of a diagnosis; `picture` is HTML that stands after its order.
std::string html_diagnosis(const Diagnosis& one, std::size_t number, const std::string& picture);

}  // namespace zeroproof
