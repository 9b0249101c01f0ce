#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace zeroproof {

enum class JUnitOutcome : std::uint8_t { passed, failed, error, skipped };

// One testcase. Plain data; `text` is ignored when it passed.
struct JUnitCase {
  std::string suite;  // groups cases; becomes classname
  std::string name;
  JUnitOutcome outcome = JUnitOutcome::passed;
  std::string text;  // one line, then details
};

// The document that CI systems read: one testsuite a run of consecutive cases with one suite
// name. No times, so that equal runs give equal bytes.
std::string junit_xml(std::string_view run, std::span<const JUnitCase> cases);

}  // namespace zeroproof
