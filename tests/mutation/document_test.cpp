// The R table of docs/reference/trace_properties.md is what the registry says.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "props/run_properties.h"
#include "tests/read_file.h"

namespace zeroproof::mutation {
namespace {

std::string path_of(const std::string& path) {
  return std::string(ZP_SOURCE_DIR) + "/" + path;
}

std::string text_of(const std::string& path) {
  return read_file(path_of(path));
}

std::string property_rows() {
  std::string text =
      "| number | id | invariant | statement | source |\n| --- | --- | --- | --- | --- |\n";
  for (const Property& property : run_properties())
    text += fmt::format("| {} | `{}` | {} | {} | {} |\n", property.number, property.id,
                        property.invariant, property.statement, property.source);
  return text;
}

TEST(FaultDocument, Names_every_run_property) {
  EXPECT_NE(text_of("docs/reference/trace_properties.md").find(property_rows()), std::string::npos)
      << property_rows();
}

}  // namespace
}  // namespace zeroproof::mutation
