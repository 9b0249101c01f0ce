#include "props/program/program_json.h"

#include "props/program/json_lines.h"
#include "props/program/value_json.h"

namespace zeroproof::program {
namespace {

nlohmann::ordered_json document_of(const Program& program) {
  nlohmann::ordered_json document = {{"schema", "zeroproof.program/1"}};
  document.update(written(program));
  return document;
}

}  // namespace

std::string program_json(const Program& program) {
  return json_lines(document_of(program).dump());
}

std::string program_line(const Program& program) {
  return document_of(program).dump();
}

}  // namespace zeroproof::program
