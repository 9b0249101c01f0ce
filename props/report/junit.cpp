#include "props/report/junit.h"

#include <tinyxml2.h>

#include <algorithm>

#include "props/report/text.h"

namespace zeroproof {
namespace {

using tinyxml2::XMLPrinter;

// XML 1.0 cannot hold control characters at all, however they are escaped.
std::string clean(std::string_view text) {
  std::string kept;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (begin != 0) kept.push_back('\n');
    kept += visible(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return kept;
}

int count(std::span<const JUnitCase> cases, JUnitOutcome outcome) {
  return static_cast<int>(std::count_if(
      cases.begin(), cases.end(), [&](const JUnitCase& one) { return one.outcome == outcome; }));
}

void push_counts(XMLPrinter& xml, std::span<const JUnitCase> cases) {
  xml.PushAttribute("tests", static_cast<int>(cases.size()));
  xml.PushAttribute("failures", count(cases, JUnitOutcome::failed));
  xml.PushAttribute("errors", count(cases, JUnitOutcome::error));
  xml.PushAttribute("skipped", count(cases, JUnitOutcome::skipped));
}

void push_case(XMLPrinter& xml, const JUnitCase& one) {
  xml.OpenElement("testcase");
  xml.PushAttribute("classname", clean(one.suite).c_str());
  xml.PushAttribute("name", clean(one.name).c_str());
  if (one.outcome != JUnitOutcome::passed) {
    const bool is_skipped = one.outcome == JUnitOutcome::skipped;
    const bool is_error = one.outcome == JUnitOutcome::error;
    xml.OpenElement(is_skipped ? "skipped" : is_error ? "error" : "failure");
    const std::string first_line = one.text.substr(0, one.text.find('\n'));
    xml.PushAttribute("message", clean(first_line).c_str());
    if (first_line.size() < one.text.size()) xml.PushText(clean(one.text).c_str());
    xml.CloseElement();
  }
  xml.CloseElement();
}

}  // namespace

std::string junit_xml(std::string_view run, std::span<const JUnitCase> cases) {
  XMLPrinter xml;
  xml.PushHeader(false, true);
  xml.OpenElement("testsuites");
  xml.PushAttribute("name", std::string(run).c_str());
  push_counts(xml, cases);
  while (!cases.empty()) {
    const auto end = std::find_if(cases.begin(), cases.end(), [&](const JUnitCase& one) {
      return one.suite != cases.front().suite;
    });
    const auto suite = cases.first(static_cast<std::size_t>(end - cases.begin()));
    xml.OpenElement("testsuite");
    xml.PushAttribute("name", clean(suite.front().suite).c_str());
    push_counts(xml, suite);
    for (const JUnitCase& one : suite) push_case(xml, one);
    xml.CloseElement();
    cases = cases.subspan(suite.size());
  }
  xml.CloseElement();
  return xml.CStr();
}

}  // namespace zeroproof
