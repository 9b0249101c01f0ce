// `zeroproof-mutation list`: the faults.
#include "props/mutation/cli/list_verb.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/mutation/fault.h"
#include "props/report/table.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string description_of(const mutation::Fault& fault) {
  return fault.is_modelled() ? std::string(fault.sentence)
                             : fmt::format("not modelled: {}", fault.reason);
}

std::string faults_text() {
  std::vector<std::vector<std::string>> rows;
  for (const mutation::Fault* fault : mutation::hunted_faults())
    rows.push_back({std::string(fault->id), description_of(*fault)});
  return table_text(rows);
}

std::string faults_json() {
  OrderedJson list = OrderedJson::array();
  for (const mutation::Fault* fault : mutation::hunted_faults())
    list.push_back({{"id", fmt::format("{}/{}", kMutation, fault->id)},
                    {"description", description_of(*fault)},
                    {"slug", fault->row().slug}});
  return OrderedJson{{"schema", "zeroproof.list/1"}, {"faults", list}}.dump(1);
}

class FaultListVerb final : public Verb {
 public:
  void declare(Flags&) override {}

  Result<VerbResult> run(Session&) override {
    return VerbResult{.text = faults_text, .json = faults_json};
  }
};

}  // namespace

std::unique_ptr<Verb> make_fault_list() {
  return std::make_unique<FaultListVerb>();
}

}  // namespace zeroproof
